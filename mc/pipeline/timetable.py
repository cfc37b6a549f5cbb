"""The levels of a schedule as the arrays that the executor scans over."""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int
from numpy.typing import NDArray

from mc.pipeline.levels import Levels, first_forwards, last_gradients, levels_of
from mc.pipeline.order import Kind


class Rows(eqx.Module):
    """What each stage does in a level; with a leading axis, in all levels.

    Where `active` is false the others mean nothing (and are valid indices).

    Attributes:
        active: whether the stage does anything.
        kind: `Kind` of the operation.
        chunk: of the stage; of a joint operation, the one that goes forward (the other goes backward).
        micro_batch: of a joint operation, the one that goes forward.
        position: in the stage's sequence.
        number: of the operation among all of a step, from what it does and not from when: forwards of all stages, whole
            backwards and gradients of inputs, gradients of weights. So it is the same in every schedule; a joint
            operation has that of its forward.
    """

    active: Bool[Array, "*levels stages"]
    kind: Int[Array, "*levels stages"]
    chunk: Int[Array, "*levels stages"]
    micro_batch: Int[Array, "*levels stages"]
    position: Int[Array, "*levels stages"]
    number: Int[Array, "*levels stages"]


class Timetable(eqx.Module):
    """What the executor runs. Make one with `timetable_of`.

    Attributes:
        stages: p.
        micro_batches: m.
        chunks: per stage.
        operations: of the longest sequence.
        depth: levels that the executor keeps.
        rows: what is done in each level.
        waits: row of the kept levels, as level·stages + stage, where the end that an operation waits for stands; −1 for
            none. Two inputs where a schedule has joint operations.
        route: what the message has crossed: boundary b forward as b, backward as p + b, nothing as 2p.
        sent: what messages cross that the operation sends.
        slot: the few chunks in whose records a level writes: c for the first forward of chunk c, chunks + c for its
            last gradients.
        recorded: which stages do.
    """

    stages: int = eqx.field(static=True)
    micro_batches: int = eqx.field(static=True)
    chunks: int = eqx.field(static=True)
    operations: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    rows: Rows
    waits: Int[Array, "levels inputs stages"]
    route: Int[Array, "levels inputs stages"]
    sent: Int[Array, "levels inputs stages"]
    slot: Int[Array, "levels records"]
    recorded: Bool[Array, "levels records stages"]

    @property
    def levels(self) -> int:
        """Steps of the scan."""
        return self.waits.shape[0]

    @property
    def updates(self) -> int:
        """Entries that one step takes to work out, idle ones with them: the work."""
        return self.levels * self.stages


def timetable_of(
    schedule: str, stages: int, micro_batches: int, chunks: int | None = None, *, group: int | None = None
) -> Timetable:
    """The timetable of a schedule; see `order_of`. Built once for the same numbers."""
    return _cached(levels_of(schedule, stages, micro_batches, chunks, group=group))


@lru_cache(maxsize=64)
def _cached(levels: Levels) -> Timetable:
    # Also where it is first asked for while something is traced.
    with jax.ensure_compile_time_eval():
        return from_levels(levels)


def from_levels(levels: Levels) -> Timetable:
    """The timetable of levels."""
    order = levels.order
    stage = np.arange(order.stages)
    phase = np.select(
        [
            np.isin(levels.taken(order.kind), (Kind.FORWARD, Kind.JOINT)),
            levels.taken(order.kind) == Kind.WEIGHT,
        ],
        [0, 2],
        1,
    )
    kind, chunk, micro_batch = (
        np.maximum(levels.taken(column), 0) for column in (order.kind, order.chunk, order.micro_batch)
    )
    number = ((phase * order.chunks + chunk) * order.micro_batches + micro_batch) * order.stages + stage
    waits = np.where(levels.source >= 0, levels.source % levels.depth * order.stages + levels.sender, -1)
    slot, recorded = _records(levels)

    def by_level(table: NDArray[np.int64]) -> Int[Array, "levels inputs stages"]:
        return jnp.asarray(np.moveaxis(table, 0, 1), jnp.int32)

    return Timetable(
        stages=order.stages,
        micro_batches=order.micro_batches,
        chunks=order.chunks,
        operations=order.operations,
        depth=levels.depth,
        rows=Rows(
            active=jnp.asarray(levels.position >= 0),
            kind=jnp.asarray(kind, jnp.int32),
            chunk=jnp.asarray(chunk, jnp.int32),
            micro_batch=jnp.asarray(micro_batch, jnp.int32),
            position=jnp.asarray(np.maximum(levels.position, 0), jnp.int32),
            number=jnp.asarray(number, jnp.int32),
        ),
        waits=by_level(waits),
        route=by_level(levels.route),
        sent=by_level(levels.sent),
        slot=jnp.asarray(slot, jnp.int32),
        recorded=jnp.asarray(recorded),
    )


def _records(levels: Levels) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    order = levels.order
    marks = []
    for column in (first_forwards(order), last_gradients(order)):
        for chunk in range(order.chunks):
            marks.append(levels.position == column[:, chunk])
    found: NDArray[np.bool_] = np.stack(marks)
    # A level writes for one chunk, or for few.
    written = np.logical_or.reduce(found, axis=2)
    most = int(written.sum(axis=0).max())
    slot = np.zeros((levels.count, most), np.int64)
    recorded = np.zeros((levels.count, most, order.stages), bool)
    for level in range(levels.count):
        for place, mark in enumerate(np.flatnonzero(written[:, level])):
            slot[level, place] = mark
            recorded[level, place] = found[mark, level]
    return slot, recorded
