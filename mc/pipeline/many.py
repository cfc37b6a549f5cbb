"""The recursion on many sets of durations at once: one operation after the other, each on all sets.

Ends are kept only as long as an operation waits for them, in rows that are used again, so that what is worked on stays in
the processor's cache: the sets of one call should be few thousand.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.levels import Levels
from mc.pipeline.listing import listed
from mc.pipeline.transfer import Transfer

_Array = NDArray[np.float64]
# What a message crosses: nothing, or a boundary forward or back.
_FREE, _FORWARD, _BACKWARD = 0, 1, 2


@dataclass(frozen=True)
class _Step:
    """An operation: rows that it reads and writes.

    Attributes:
        entry: of the table of durations.
        stage: it is on.
        row: where its end is put.
        waits: rows of what it waits for, and what messages cross.
        sends: what the messages cross that hold its stage.
        begins: rows of the results that are its begin.
        ends: and its end.
    """

    entry: int
    stage: int
    row: int
    waits: tuple[tuple[int, int], ...]
    sends: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


def run_many(levels: Levels, table: Sequence[_Array], transfer: Transfer | None = None) -> _Array:
    """Times of a step for each set.

    Args:
        levels: of the schedule.
        table: [sets] for each kind, stage and chunk, as `by_kind` orders them.
        transfer: of messages, [sets] or a number each way; none without it.

    Returns:
        [stages + 2 · stages · chunks, sets]: ends of the stages, begins of the first forwards, ends of the last gradients.
    """
    steps, rows, results = _steps(levels)
    sets = table[0].size
    late = (0.0, 0.0, 0.0) if transfer is None else (0.0, transfer.forward, transfer.backward)
    blocking = transfer is not None and transfer.blocking
    free: list[_Array | None] = [None] * levels.order.stages
    kept, held = np.empty((rows, sets)), np.empty((len(free), sets))
    arrived, latest = np.empty((2, sets))
    found = np.empty((results, sets))
    for step in steps:
        begun = free[step.stage]
        for row, crossed in step.waits:
            ready = (
                kept[row]
                if transfer is None or crossed == _FREE
                else np.add(kept[row], late[crossed], out=arrived)
            )
            begun = ready if begun is None else np.maximum(begun, ready, out=latest)
        for row in step.begins:
            found[row] = 0.0 if begun is None else begun
        took, end = table[step.entry], kept[step.row]
        if begun is None:
            end[:] = took
        else:
            np.add(begun, took, out=end)
        for row in step.ends:
            found[row] = end
        free[step.stage] = end
        if blocking and step.sends:
            longest = late[step.sends[0]] if len(step.sends) == 1 else np.maximum(*late[1:])
            free[step.stage] = np.add(end, longest, out=held[step.stage])
    return found


@lru_cache(maxsize=64)
def _steps(levels: Levels) -> tuple[tuple[_Step, ...], int, int]:
    plan, stages = listed(levels), levels.order.stages
    size = len(plan.stage)
    # Until which operation each end is needed: by those that wait for it, and by the next of its stage.
    until = np.arange(size)
    for waits in plan.waits:
        waited = np.array(waits) - 1
        waiting = np.flatnonzero(waited >= 0)
        np.maximum.at(until, waited[waiting], waiting)
    after: dict[int, int] = {}
    for place in reversed(range(size)):
        until[place] = max(until[place], after.get(plan.stage[place], size))
        after[plan.stage[place]] = place
    over: list[list[int]] = [[] for _ in range(size + 1)]
    for place, last in enumerate(until.tolist()):
        over[last].append(place)
    crossed = np.select(
        [plan.route < stages, plan.route < 2 * stages], [_FORWARD, _BACKWARD], _FREE
    ).T.tolist()
    sent = np.select([plan.sent < stages, plan.sent < 2 * stages], [_FORWARD, _BACKWARD], _FREE).T.tolist()
    results = [plan.last.tolist(), plan.first_forward.ravel().tolist(), plan.last_gradient.ravel().tolist()]
    numbered = list(enumerate(itertools.chain(*results)))
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for row, place in numbered:
        is_begin = stages <= row < stages + len(results[1])
        (begins if is_begin else ends).setdefault(place, []).append(row)
    row_of = [0] * size
    unused: list[int] = []
    rows, steps = 0, []
    for place in range(size):
        if unused:
            row_of[place] = unused.pop()
        else:
            row_of[place], rows = rows, rows + 1
        steps.append(
            _Step(
                entry=int(plan.which[place]),
                stage=plan.stage[place],
                row=row_of[place],
                waits=tuple(
                    (row_of[waits[place] - 1], way)
                    for waits, way in zip(plan.waits, crossed[place], strict=True)
                    if waits[place]
                ),
                sends=tuple(way for way in sent[place] if way != _FREE),
                begins=tuple(begins.get(place, ())),
                ends=tuple(ends.get(place, ())),
            )
        )
        unused += [row_of[each] for each in over[place]]
    return tuple(steps), rows, len(numbered)
