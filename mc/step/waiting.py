"""Who waits for whom, where mitigations of stragglers say so.

Of `started` ranks a step waits for all but the slowest `dropped` (`mc.delays.order_statistic`). Three ways, as in `compute`:

- ranks that are alike: one draw at a beta quantile, whatever the numbers;
- classes of ranks, by their persistent factor: of each class the slowest dropped + 1, from the slowest down. With n in a
  class and V uniform, log F of the j-th slowest is the sum over i ≤ j of log V_i/(n − i + 1) (David and Nagaraja 2003,
  section 2.5); of all classes together the (dropped + 1)-th counts. Exact, at a cost of dropped x classes;
- every rank drawn, and sorted: where units share transient noise, and where many of several classes are dropped.

An exchange every `local_steps` steps waits for sums of them (`mc.delays.total`), an exchange that may be late for nobody at
once (`delayed.py`).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mc.delays import (
    BetaLevels,
    Constant,
    Method,
    OrderStatistic,
    Scaled,
    add,
    beta_levels,
    sampler,
    total,
    with_inverse,
    with_pauses,
)
from mc.delays.numerics import log_complement
from mc.random import draw_levels, stream
from mc.step.compute import Compute, scopes_of
from mc.step.persistent import Classes, factors, place_factors
from mc.step.shared_noise import SharedNoise

# Up to here the slowest of each class are drawn one after the other; beyond, every rank.
FEW_DROPPED = 64
# Steps that are drawn side by side where every rank is drawn.
_SIDE_BY_SIDE = 16


class Waiting(eqx.Module):
    """What a step waits for. Make one with `build_waiting`.

    Attributes:
        started: ranks that start a step.
        dropped: of these, how many nobody waits for.
        removed: chips beyond these that were taken out before, since they are the slowest.
        local_steps: from one exchange to the next.
        staleness: how many exchanges late a rank may be.
        every_rank: whether each is drawn.
        drawn_steps: local steps that are drawn one by one; 1 where the law of a rank is that of their mean.
        levels: of the order statistic; None where nothing is dropped, or it is not used.
    """

    started: int = eqx.field(static=True)
    dropped: int = eqx.field(static=True, default=0)
    removed: int = eqx.field(static=True, default=0)
    local_steps: int = eqx.field(static=True, default=1)
    staleness: int = eqx.field(static=True, default=0)
    every_rank: bool = eqx.field(static=True, default=False)
    drawn_steps: int = eqx.field(static=True, default=1)
    levels: BetaLevels | None = None


def build_waiting(
    compute: Compute,
    *,
    started: int,
    dropped: int = 0,
    removed: int = 0,
    local_steps: int = 1,
    staleness: int = 0,
    method: Method = "exact",
) -> tuple[Compute, Waiting]:
    """The cheapest way that is exact, and the compute phase with the laws that it draws from.

    Args:
        compute: of one step, for as many ranks as start.
        started: ranks that start.
        dropped: of these, how many nobody waits for.
        removed: chips that were taken out.
        local_steps: from one exchange to the next.
        staleness: how many exchanges late a rank may be.
        method: `direct` draws every rank and step.
    """
    noises = (*compute.shared, *compute.job)
    # A factor that ranks share in a step does not commute with a sum over steps.
    apart = local_steps > 1 and any(each.spread is not None for each in noises)
    several = bool(compute.persistent or compute.kinds)
    every = (
        method == "direct"
        or compute.every_rank is not None
        or staleness > 0
        or apart
        or (dropped > 0 and (bool(compute.shared) or (several and dropped > FEW_DROPPED)))
    )
    one_by_one = local_steps if apart or method == "direct" else 1
    if local_steps > one_by_one:
        compute = _averaged(compute, local_steps)
    levels = beta_levels(dropped, started) if dropped and not every and not several else None
    waiting = Waiting(started, dropped, removed, local_steps, staleness, every, one_by_one, levels)
    return compute, waiting


def draw_waiting(
    compute: Compute,
    waiting: Waiting,
    key: PRNGKeyArray,
    size: int,
    *,
    classes: Classes | None,
    realisation: PRNGKeyArray,
    method: Method,
) -> Float[Array, " size"]:
    """`size` draws of when those who are waited for have computed; seconds per step.

    Args:
        compute: the phase, from `build_waiting`.
        waiting: likewise.
        key: for these steps.
        size: how many.
        classes: of the realisation, where something is persistent.
        realisation: a key for the realisation, where every rank is placed.
        method: how ranks are drawn.
    """
    if waiting.every_rank:
        draw = times_of_ranks(compute, waiting, classes, realisation)

        def one_step(index):
            times = draw(jax.random.fold_in(key, index))
            return jax.lax.top_k(times, waiting.dropped + 1)[0][-1]

        return jax.lax.map(one_step, jnp.arange(size), batch_size=min(_SIDE_BY_SIDE, size))
    if waiting.dropped == 0:
        return compute.draw(key, size, classes=classes, realisation=realisation, method=method)
    if waiting.levels is not None:
        times = sampler(OrderStatistic(compute.rank, waiting.levels), method)(key, size)
    else:
        assert classes is not None
        times = _draw_classes(compute, waiting.dropped + 1, key, size, classes)
    return compute.with_job_noise(times, key, method)


def _draw_classes(
    compute: Compute, kept: int, key: PRNGKeyArray, size: int, classes: Classes
) -> Float[Array, " size"]:
    """The `kept`-th slowest of all classes."""
    law, own = with_inverse(compute.rank), factors(compute.persistent, classes)
    place = jnp.arange(kept, dtype=jnp.result_type(float))[:, None]

    def one(slowest, indexed):
        index, factor, count = indexed
        levels = draw_levels(jax.random.fold_in(key, index), (kept, size))
        there = place < count
        log_cdf = jnp.cumsum(log_complement(levels) / jnp.where(there, count - place, 1.0), axis=0)
        times = jnp.where(there, factor * law.quantile(log_complement(log_cdf)), 0.0)
        both = jnp.concatenate([slowest, times], axis=0)
        return jax.lax.top_k(both.T, kept)[0].T, None

    start = jnp.zeros((kept, size), jnp.result_type(float))
    indexed = jnp.arange(own.shape[0]), own, jnp.asarray(classes.counts)
    return jax.lax.scan(one, start, indexed)[0][-1]


def times_of_ranks(
    compute: Compute, waiting: Waiting, classes: Classes | None, realisation: PRNGKeyArray
) -> Callable[[PRNGKeyArray], Float[Array, " ranks"]]:
    """A function of a step's key: what every rank takes, the mean of its local steps, with all noise."""
    law, ranks = with_inverse(compute.rank), waiting.started
    place = jnp.arange(ranks)
    scopes: list[tuple[int, Float[Array, " ranks"] | None, SharedNoise | None]] = []
    if compute.every_rank is not None:
        kept = _fastest(compute, ranks, waiting.removed, realisation)
        for unit, persistent, noise in scopes_of(compute.persistent, compute.shared):
            placed = [
                place_factors(entry, ranks + waiting.removed, realisation)[kept // unit]
                for entry in persistent
            ]
            scopes.append((unit, _product(placed), None if noise is None else noise.prepared()))
    else:
        scopes = [(noise.unit, None, noise.prepared()) for noise in compute.shared]
        if classes is not None:
            # Units of the outermost shared scope, one class after the other: nothing tells their order.
            units = -(-ranks // compute.unit)
            counts = jnp.asarray(classes.counts).astype(jnp.int32)
            own = jnp.repeat(factors(compute.persistent, classes), counts, total_repeat_length=units)
            scopes.append((compute.unit, own[place // compute.unit], None))
    job = [noise.prepared() for noise in compute.job]

    def one_step(key: PRNGKeyArray) -> Float[Array, " ranks"]:
        times = law.quantile(draw_levels(stream(key, "rank"), (ranks,)))
        for unit, placed, noise in scopes:
            if noise is not None:
                units = -(-ranks // unit)
                factor, seconds = noise.affine(units, stream(key, f"shared {unit}"))
                times = times * factor[place // unit] + seconds[place // unit]
            if placed is not None:
                times = times * placed
        for index, noise in enumerate(job):
            factor, seconds = noise.affine(1, stream(key, f"job {index}"))
            times = times * factor + seconds
        return times

    if waiting.drawn_steps == 1:
        return one_step

    def mean_of_steps(key: PRNGKeyArray) -> Float[Array, " ranks"]:
        def local(index, so_far):
            return so_far + one_step(jax.random.fold_in(key, index))

        nothing = jnp.zeros(ranks, jnp.result_type(float))
        return jax.lax.fori_loop(0, waiting.drawn_steps, local, nothing) / waiting.drawn_steps

    return mean_of_steps


def _fastest(compute: Compute, ranks: int, removed: int, realisation: PRNGKeyArray) -> Array:
    """The numbers of the chips that are left, by what persists of them, in their order."""
    tested = ranks + removed
    place = jnp.arange(tested)
    if not removed:
        return place
    factor = jnp.ones(tested, jnp.result_type(float))
    for entry in compute.persistent:
        factor = factor * place_factors(entry, tested, realisation)[place // entry.unit]
    return jnp.sort(jnp.argsort(factor, stable=True)[:ranks])


def _product(placed: list[Array]) -> Array | None:
    found: Array | None = None
    for each in placed:
        found = each if found is None else found * each
    return found


def without_slowest(classes: Classes, compute: Compute, removed: int) -> tuple[Classes, float]:
    """The classes of realisations without so many of their slowest units, and the mean factor left, over that before.

    Args:
        classes: with a leading axis of realisations, of units and those that are taken out.
        compute: whose persistent factors they have.
        removed: how many, counted as classes are.
    """
    own = np.asarray(jax.vmap(lambda each: factors(compute.persistent, each))(classes), np.float64)
    counts = np.asarray(classes.counts, np.float64)
    order = np.argsort(-own, axis=1, kind="stable")
    sorted_counts = np.take_along_axis(counts, order, axis=1)
    before = np.cumsum(sorted_counts, axis=1) - sorted_counts
    taken = np.clip(removed - before, 0, sorted_counts)
    left = np.empty_like(counts)
    np.put_along_axis(left, order, sorted_counts - taken, axis=1)
    means = [(own * each).sum() / each.sum() for each in (left, counts)]
    return Classes(classes.choices, left, classes.fixed), float(means[0] / means[1])


def _averaged(compute: Compute, steps: int) -> Compute:
    """The same with what ranks and units take in the mean of so many steps; no factor may be shared."""
    rank = Scaled(total(compute.rank, steps), 1 / steps)
    shared, job = (
        tuple(_averaged_noise(noise, steps) for noise in noises) for noises in (compute.shared, compute.job)
    )
    return Compute(rank, compute.ranks, compute.persistent, shared, job, compute.every_rank, compute.kinds)


def _averaged_noise(noise: SharedNoise, steps: int) -> SharedNoise:
    law = Constant(0.0) if noise.jitter is None else noise.jitter
    if noise.pause_probability is not None and noise.pause is not None:
        law = with_pauses(law, noise.pause_probability, add(law, noise.pause))
    return SharedNoise(noise.unit, jitter=Scaled(total(law, steps), 1 / steps))
