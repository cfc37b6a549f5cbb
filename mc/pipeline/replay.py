"""A step of a pipeline with all that happens in it: when each operation starts and ends, and what it waited for.

The recursion of the executor on durations that are known, for a few pipelines at once, in double precision. It keeps everything,
so that the *critical path* can be read off: from any operation back to what decided when it starts, the one before it on its
stage or the sender of a message, until something started at 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.levels import Levels
from mc.pipeline.transfer import Transfer

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Replay:
    """Times of operations by level, stage and batch; meaningless where a stage does nothing in a level.

    Attributes:
        levels: of the schedule.
        start: seconds.
        end: seconds.
        left: when what an operation sends leaves: its end, or later by what disturbs the message.
        free: from when the stage could go on: the end, or with blocking messages when they are over.
        decided: which message an operation waited for, 0 or 1; −1 where it was the operation before it.
        crossing: seconds that messages take on each route, [routes, batch].
    """

    levels: Levels
    start: _Array
    end: _Array
    left: _Array
    free: _Array
    decided: NDArray[np.int64]
    crossing: _Array

    @property
    def level_of(self) -> NDArray[np.int64]:
        """int[stages, operations]: in which level each operation of a stage's sequence is; −1 beyond its end."""
        order = self.levels.order
        found = np.full((order.stages, order.operations), -1)
        level, stage = np.nonzero(self.levels.position >= 0)
        found[stage, self.levels.position[level, stage]] = level
        return found


def replay(
    levels: Levels, took: _Array, *, transfer: Transfer | None = None, late: _Array | None = None
) -> Replay:
    """What happens in a step.

    Args:
        levels: of the schedule.
        took: seconds of operations, [levels, stages, batch].
        transfer: of messages: numbers, [stages], or [stages, batch]; none without it.
        late: seconds that the messages of operations take beside, [levels, stages, batch]; none without it.
    """
    count, stages, batch = took.shape
    crossing = np.zeros((2 * stages + 1, batch))
    if transfer is not None:
        for way, seconds in enumerate((transfer.forward, transfer.backward)):
            column = np.asarray(seconds, np.float64)
            crossing[way * stages : (way + 1) * stages] = column[:, None] if column.ndim == 1 else column
    blocking = transfer is not None and transfer.blocking
    active = levels.position >= 0
    sends = (levels.sent < 2 * stages).any(axis=0)
    start, end, left, freed = (np.zeros(took.shape) for _ in range(4))
    decided = np.full(took.shape, -1)
    free = np.zeros((stages, batch))
    for level in range(count):
        begun = free.copy()
        for which, (source, sender, route) in enumerate(
            zip(levels.source[:, level], levels.sender[:, level], levels.route[:, level], strict=True)
        ):
            arrived = np.where((source >= 0)[:, None], left[source, sender] + crossing[route], -np.inf)
            decided[level] = np.where(arrived > begun, which, decided[level])
            begun = np.maximum(begun, arrived)
        mine = active[level][:, None]
        start[level], end[level] = begun, begun + took[level]
        left[level] = end[level]
        if late is not None:
            left[level] += np.where(sends[level][:, None], late[level], 0.0)
        gone = end[level]
        if blocking:
            for sent in levels.sent[:, level]:
                gone = np.maximum(gone, left[level] + crossing[sent])
        free = np.where(mine, gone, free)
        freed[level] = free
    return Replay(levels, start, end, left, freed, decided, crossing)
