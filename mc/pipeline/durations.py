"""Durations of operations from those of a micro-batch's forward and backward: by kind, stage and chunk.

A whole backward takes what its halves take. A joint operation takes what a forward by one chunk and a whole backward
by the other take, unless it is said what they take together.

Everything here is plain arithmetic on what the arrays are: NumPy, JAX or numbers.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from mc.pipeline.timetable import Rows, Timetable

KINDS = 5


def by_kind(
    stages: int,
    chunks: int,
    forward: Any,
    backward_input: Any,
    backward_weight: Any,
    joint: Any = None,
) -> Shaped[Any, "kinds stages chunks ..."]:
    """Seconds of each kind of operation on each stage by each chunk, in the order of `Kind`.

    Args:
        stages: p.
        chunks: parts per stage.
        forward: of one micro-batch through one chunk: a number, [stages, 1] or [stages, chunks], and whatever axes
            follow.
        backward_input: its gradients of the inputs; likewise.
        backward_weight: its gradients of the weights; likewise.
        joint: forward by the chunk and whole backward by the other, overlapped; likewise.
    """
    given = (forward, backward_input, backward_weight, *(() if joint is None else (joint,)))
    xp = jnp if any(isinstance(each, jax.Array) for each in given) else np
    columns = [xp.asarray(each) for each in given]
    rest = max((column.shape[2:] for column in columns), key=len)

    def whole(column: Any) -> Any:
        missing = 2 + len(rest) - max(column.ndim, 2)
        shaped = column.reshape(*(column.shape or (1, 1)), *[1] * missing)
        return xp.broadcast_to(shaped, (stages, chunks, *rest))

    ahead, inputs, weights, *together = (whole(column) for column in columns)
    back = inputs + weights
    both = together[0] if together else ahead + xp.flip(back, axis=1)
    return xp.stack([ahead, back, inputs, weights, both])


class Fixed:
    """Operations that take what a table says: a duration for `completion`.

    Args:
        timetable: of what.
        table: [kinds, stages, chunks] or [kinds, stages, chunks, batch], as `by_kind` gives it.
    """

    def __init__(self, timetable: Timetable, table: Float[Array, "kinds stages chunks *batch"]):
        self._stages, self._chunks = timetable.stages, timetable.chunks
        self._rows = jnp.asarray(table).reshape(KINDS * self._stages * self._chunks, -1)

    def __call__(self, rows: Rows) -> Float[Array, "stages #batch"]:
        """Seconds of the operations of a level."""
        stage = jnp.arange(self._stages)
        return self._rows[(rows.kind * self._stages + stage) * self._chunks + rows.chunk]
