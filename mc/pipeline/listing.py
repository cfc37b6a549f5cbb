"""Operations in an order in which each comes after what it waits for, with all that a recursion needs to know of them.

As one list, or as rows of a level each.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.durations import KINDS
from mc.pipeline.levels import Levels, first_forwards, last_gradients
from mc.pipeline.order import Kind


@dataclass(frozen=True, eq=False)
class Listing:
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
def listed(levels: Levels) -> Listing:
    """One list, level by level."""
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
def in_rows(levels: Levels) -> Listing:
    """A row for each level, with an entry for each stage."""
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


def _planned(levels: Levels, place: NDArray[np.int64], **columns: Any) -> Listing:
    order = levels.order
    level, stage = np.nonzero(levels.position >= 0)
    by_position = np.zeros((order.stages, order.operations), np.int64)
    by_position[stage, levels.position[level, stage]] = place[level, stage]
    row = np.arange(order.stages)
    size = KINDS * order.stages * order.chunks
    count = np.bincount(_which(levels).ravel(), minlength=size)[:size]
    return Listing(
        first_forward=by_position[row[:, None], first_forwards(order)],
        last_gradient=by_position[row[:, None], last_gradients(order)],
        last=by_position[row, (order.kind != Kind.IDLE).sum(axis=1) - 1],
        count=count.reshape(KINDS, order.stages, order.chunks).astype(np.float64),
        **columns,
    )
