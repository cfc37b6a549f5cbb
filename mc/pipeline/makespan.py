"""One step without noise, from one number for each kind, stage and chunk: quickly, and without JAX.

The recursion is that of the executor. For few stages a plain loop over operations, in an order in which each finds what
it waits for, is quicker than anything that calls NumPy for each level; for many stages it is the other way round. A search
over plans asks for thousands of these, each for other numbers of stages and micro-batches, where compiling would not pay.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.durations import KINDS, by_kind
from mc.pipeline.finish import Finish
from mc.pipeline.levels import Levels, first_forwards, last_gradients, levels_of
from mc.pipeline.order import Kind
from mc.pipeline.transfer import Transfer

# What an operation costs in the loop, and a level in NumPy: only their ratio matters.
_OPERATION, _LEVEL = 0.13, 3.0


def makespan(
    schedule: str,
    stages: int,
    micro_batches: int,
    chunks: int | None = None,
    *,
    forward: Any,
    backward_input: Any,
    backward_weight: Any,
    joint: Any = None,
    transfer: Transfer | None = None,
    start: Any = None,
    group: int | None = None,
) -> Finish:
    """What a step takes, to rounding in double precision.

    Args:
        schedule: as for `order_of`, with the numbers that follow.
        stages: p.
        micro_batches: m.
        chunks: v.
        forward: seconds of one micro-batch through one chunk: a number, [stages, 1] or [stages, chunks].
        backward_input: its gradients of the inputs; likewise.
        backward_weight: its gradients of the weights; likewise.
        joint: a forward by the chunk and a whole backward by the other, overlapped; what both take without it.
        transfer: seconds of messages.
        start: when each stage can start.
        group: as for `order_of`.

    Returns:
        Times without a batch axis.
    """
    levels = levels_of(schedule, stages, micro_batches, chunks, group=group)
    table = by_kind(stages, levels.order.chunks, forward, backward_input, backward_weight, joint)
    return makespan_of(levels, np.asarray(table, np.float64), transfer=transfer, start=start)


def makespan_of(
    levels: Levels,
    table: NDArray[np.float64],
    *,
    transfer: Transfer | None = None,
    start: Any = None,
) -> Finish:
    """The same for levels, with durations as `by_kind` gives them."""
    stages = levels.order.stages
    routes = np.zeros(2 * stages + 1)
    if transfer is not None:
        routes[:stages], routes[stages:-1] = transfer.forward, transfer.backward
    begin = np.array(np.broadcast_to(0.0 if start is None else start, stages), np.float64)
    one_by_one = _OPERATION * np.count_nonzero(levels.position >= 0) < _LEVEL * levels.count
    plan = _listed(levels) if one_by_one else _in_rows(levels)
    took = np.append(table, 0.0)[plan.which]
    held = None if transfer is None or not transfer.blocking else routes[plan.sent].max(axis=0)
    ends = (_loop if one_by_one else _by_level)(plan, took, routes[plan.route], begin, held)
    first, last = plan.first_forward, plan.last_gradient
    end = ends[plan.last]
    return Finish(
        makespan=end.max(),
        end=end,
        busy=(plan.count * table).sum(axis=(0, 2)),
        first_start=ends[first] - took.ravel()[first],
        gradient_end=ends[last],
        gradient_duration=took.ravel()[last],
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """Operations in an order in which each comes after what it waits for: one list, or rows of a level each.

    Entries are found by their place in the list, or in all rows one after the other. In front of them stands one more
    end, which never delays; waits counts from it, and so from 1.

    Attributes:
        which: entry of the table of durations; in rows, one beyond its end where a stage is idle.
        stage: which stage an entry is on; as a list.
        waits: [inputs, ...], for the end of which entry it waits; as lists or rows.
        route: int[inputs, ...], what the message crosses.
        sent: int[inputs, ...], what it sends.
        first_forward: int[stages, chunks], their places.
        last_gradient: likewise.
        last: int[stages], places of the last operations.
        count: how often each entry of the table is used.
    """

    which: NDArray[np.int64]
    stage: list[int]
    waits: Any
    route: NDArray[np.int64]
    sent: NDArray[np.int64]
    first_forward: NDArray[np.int64]
    last_gradient: NDArray[np.int64]
    last: NDArray[np.int64]
    count: NDArray[np.float64]


@lru_cache(maxsize=512)
def _listed(levels: Levels) -> _Plan:
    level, stage = np.nonzero(levels.position >= 0)
    place = np.full((levels.count + 1, levels.order.stages), -1)
    place[level, stage] = np.arange(level.size)
    # A level of −1 is the extra one, in which there is nothing.
    waits = place[levels.source, levels.sender][:, level, stage] + 1
    return _planned(
        levels,
        place,
        which=_which(levels)[level, stage],
        stage=stage.tolist(),
        waits=waits.tolist(),
        route=levels.route[:, level, stage],
        sent=levels.sent[:, level, stage],
    )


@lru_cache(maxsize=512)
def _in_rows(levels: Levels) -> _Plan:
    stages = levels.order.stages
    place = np.arange((levels.count + 1) * stages).reshape(-1, stages)
    waits = np.where(levels.source >= 0, levels.source * stages + levels.sender + 1, 0)
    return _planned(
        levels, place, which=_which(levels), stage=[], waits=waits, route=levels.route, sent=levels.sent
    )


def _which(levels: Levels) -> NDArray[np.int64]:
    order = levels.order
    kind, chunk = levels.taken(order.kind), levels.taken(order.chunk)
    entry = (kind * order.stages + np.arange(order.stages)) * order.chunks + chunk
    return np.where(levels.position >= 0, entry, KINDS * order.stages * order.chunks)


def _planned(levels: Levels, place: NDArray[np.int64], **columns: Any) -> _Plan:
    order = levels.order
    level, stage = np.nonzero(levels.position >= 0)
    by_position = np.zeros((order.stages, order.operations), np.int64)
    by_position[stage, levels.position[level, stage]] = place[level, stage]
    row = np.arange(order.stages)
    size = KINDS * order.stages * order.chunks
    count = np.bincount(_which(levels).ravel(), minlength=size)[:size]
    return _Plan(
        first_forward=by_position[row[:, None], first_forwards(order)],
        last_gradient=by_position[row[:, None], last_gradients(order)],
        last=by_position[row, (order.kind != Kind.IDLE).sum(axis=1) - 1],
        count=count.reshape(KINDS, order.stages, order.chunks).astype(np.float64),
        **columns,
    )


_Times = NDArray[np.float64]


def _loop(plan: _Plan, took: _Times, arriving: _Times, begin: _Times, held: _Times | None) -> _Times:
    free, ends = begin.tolist(), [-math.inf]
    more = [
        iter(column)
        for waits, late in zip(plan.waits[1:], arriving[1:], strict=True)
        for column in (waits, late.tolist())
    ]
    hold = itertools.repeat(0.0) if held is None else held.tolist()
    columns = zip(plan.stage, plan.waits[0], arriving[0].tolist(), took.tolist(), hold, strict=False)
    for stage, waits, late, duration, holding in columns:
        begun = free[stage]
        arrived = ends[waits] + late
        if arrived > begun:
            begun = arrived
        if more:
            arrived = ends[next(more[0])] + next(more[1])
            if arrived > begun:
                begun = arrived
        end = begun + duration
        ends.append(end)
        free[stage] = end + holding
    return np.array(ends[1:])


def _by_level(plan: _Plan, took: _Times, arriving: _Times, begin: _Times, held: _Times | None) -> _Times:
    levels, stages = took.shape
    ends = np.full(1 + took.size, -np.inf)
    free, arrived = begin, np.empty(stages)
    for level in range(levels):
        end = ends[1 + level * stages : 1 + (level + 1) * stages]
        for waits, late in zip(plan.waits, arriving, strict=True):
            np.take(ends, waits[level], out=arrived)
            arrived += late[level]
            free = np.maximum(free, arrived)
        np.add(free, took[level], out=end)
        free = end if held is None else end + held[level]
    return ends[1:]
