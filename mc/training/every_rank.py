"""The slowest rank of a group with every rank drawn: what `slowness.py` has tables of, by the same formula."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mc.pipeline import Draws, Rows
from mc.random import levels_from_words
from mc.training.sources import KERNELS, PER_RANK, PER_STRETCH, RANKS, Place, column, words_of
from mc.training.unit_noise import pauses
from mc.training.work import Noise, Work


def each_rank(
    work: Work,
    noise: Noise,
    factor: Float[Array, "stages batch ranks"],
    chip: Int[Array, "stages batch ranks"] | None,
    draws: Draws,
    rows: Rows,
    at: Place,
) -> Float[Array, "stages batch"]:
    """What the slowest rank takes, times what the slowest of stretches do."""
    rank, group = noise.rank, column(work.group, at)
    seconds, shape = noise.seconds[group], factor.shape[:2]

    def own_factor(index: Array) -> Array:
        if chip is None or noise.ratio is None:
            return factor[..., index]
        return factor[..., index] * noise.ratio[group, chip[..., index]]

    def levels(source: Array) -> Array:
        return levels_from_words(*words_of(draws, source, rows.number))

    def one(index: Array, most: Array) -> Array:
        source = RANKS + PER_RANK * index.astype(jnp.uint32)
        took = own_factor(index)
        if rank.spread is not None:
            took = took * rank.spread.quantile(levels(source))
        if rank.jitter is not None:
            took = took + rank.jitter.quantile(levels(source + 1)) / seconds
        if rank.pause is not None:
            took = took + pauses(rank.pause, rank.pause_probability, levels(source + 2)) / seconds
        return jnp.maximum(most, took)

    ranks = factor.shape[-1]
    slowest = jax.lax.fori_loop(0, ranks, one, jnp.zeros(shape))
    kernels = rank.kernels
    if kernels is None:
        return slowest
    stretches = noise.stretches[group]
    largest = jax.lax.fori_loop(
        0, ranks, lambda index, most: jnp.maximum(most, own_factor(index)), jnp.zeros(shape)
    )

    def stretch(index: Array, total: Array) -> Array:
        def of_rank(number: Array, most: Array) -> Array:
            source = KERNELS + PER_STRETCH * (index * ranks + number).astype(jnp.uint32)
            took = own_factor(number) / largest
            if kernels.spread is not None:
                took = took * kernels.spread.quantile(levels(source))
            if kernels.jitter is not None:
                took = took + kernels.jitter.quantile(levels(source + 1)) * stretches / (seconds * largest)
            return jnp.maximum(most, took)

        took = jax.lax.fori_loop(0, ranks, of_rank, jnp.zeros(shape))
        return total + jnp.where(index < stretches, took, 0.0)

    total = jax.lax.fori_loop(0, jnp.max(noise.stretches), stretch, jnp.zeros(shape))
    return slowest * total / stretches
