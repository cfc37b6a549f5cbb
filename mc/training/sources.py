"""Which random words an operation has, and where it stands in tables of operations."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mc.pipeline import Draws
from mc.random import threefry2x32

# Sources of words: numbers that nothing else has. Of what is drawn for every rank, tier or stretch these are the first.
LOAD, DOCUMENTS, RANKS = 1, 2, 16
WAITED, SENT, KERNELS, TIER = 1 << 24, 1 << 26, 1 << 28, 1 << 20
# Three sources per rank: spread, jitter and pauses; two per rank and stretch.
PER_RANK, PER_STRETCH = 3, 2

# A place in the tables of operations: by stage, and by batch too where replicas differ.
Place = Int[Array, " stages"] | Int[Array, "stages batch"]


def words_of(draws: Draws, source: Any, number: Int[Array, " stages"]) -> tuple[Array, Array]:
    """Two words for the operations of these numbers, of each pipeline; [stages, batch]."""
    low, high = (word[None, :] for word in draws.words_of_trial)
    shape = (number.size, low.size)
    counter = jnp.broadcast_to(number.astype(jnp.uint32)[:, None], shape)
    return threefry2x32((low, high), jnp.full(shape, source, jnp.uint32), counter)


def column(table: Array, at: Place) -> Float[Array, "stages #batch"]:
    """What a table has at these places."""
    found = table.reshape(-1)[at]
    return found if found.ndim == 2 else found[:, None]
