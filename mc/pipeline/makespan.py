"""One step without noise, from one number for each kind, stage and chunk: quickly, and without JAX.

The recursion is that of the executor. For few stages a plain loop over operations, in an order in which each finds what
it waits for, is quicker than anything that calls NumPy for each level; for many stages it is the other way round. A search
over plans asks for thousands of these, each for other numbers of stages and micro-batches, where compiling would not pay.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.durations import by_kind
from mc.pipeline.finish import Finish
from mc.pipeline.levels import Levels, levels_of
from mc.pipeline.listing import Listing, in_rows, listed
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
    is_listed = _OPERATION * np.count_nonzero(levels.position >= 0) < _LEVEL * levels.count
    plan = listed(levels) if is_listed else in_rows(levels)
    ends, took = run(plan, table, transfer, start)
    return finish_of(plan, table, ends, took)


_Times = NDArray[np.float64]


def run(
    plan: Listing, table: _Times, transfer: Transfer | None = None, start: Any = None
) -> tuple[_Times, _Times]:
    """When each entry of a listing ends, and how long it takes."""
    stages = table.shape[1]
    routes = np.zeros(2 * stages + 1)
    if transfer is not None:
        routes[:stages], routes[stages:-1] = transfer.forward, transfer.backward
    begin = np.array(np.broadcast_to(0.0 if start is None else start, stages), np.float64)
    took = np.append(table, 0.0)[plan.which]
    held = None if transfer is None or not transfer.blocking else routes[plan.sent].max(axis=0)
    ends = (_one_by_one if plan.stage else _by_level)(plan, took, routes[plan.route], begin, held)
    return ends, took


def finish_of(plan: Listing, table: _Times, ends: _Times, took: _Times) -> Finish:
    """What is asked of a step, from when its operations end."""
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


def _one_by_one(plan: Listing, took: _Times, arriving: _Times, begin: _Times, held: _Times | None) -> _Times:
    if held is None and len(plan.waits) == 1:
        return _one_message(plan, took, arriving[0], begin)
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


def _one_message(plan: Listing, took: _Times, arriving: _Times, begin: _Times) -> _Times:
    """The same for what waits for one message at most and holds nobody: most schedules, in less time."""
    free, ends = begin.tolist(), [-math.inf]
    add = ends.append
    for stage, waits, late, duration in zip(
        plan.stage, plan.waits[0], arriving.tolist(), took.tolist(), strict=True
    ):
        begun = free[stage]
        arrived = ends[waits] + late
        if arrived > begun:
            begun = arrived
        free[stage] = end = begun + duration
        add(end)
    return np.array(ends[1:])


def _by_level(plan: Listing, took: _Times, arriving: _Times, begin: _Times, held: _Times | None) -> _Times:
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
