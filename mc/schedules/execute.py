"""A schedule on real numbers.

A round reads what all its messages carry before any of them is written, as a real exchange does: partners
swap. A slot writes into a node once, so its messages are written together; the Python loop is over rounds and
slots only.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from mc.schedules.schedule import Schedule, ScheduleError


def execute(schedule: Schedule, data: np.ndarray, combine: np.ufunc = np.add) -> np.ndarray:
    """Carry out a collective.

    Args:
        schedule: of any collective.
        data: [ranks, chunks·k], what each rank's buffer holds at the start. Where ranks have parts
            (all-gather, gather) only the chunks count that a rank owns by `schedule.owner`; in an all-to-all
            the buffer is [ranks·k] in the order of the ranks that it is for.
        combine: how two buffers become one; must be associative and commutative.

    Returns:
        [ranks, chunks·k], what the buffers hold at the end. Where ranks have parts (reduce-scatter, scatter)
        only the chunks count that a rank owns; after a reduce or gather only rank 0's buffer does; in
        an all-to-all the order is that of the ranks it comes from.

    Raises:
        ScheduleError: the data do not have this shape.
    """
    data = np.asarray(data)
    if data.ndim != 2 or data.shape[0] != schedule.ranks or data.shape[1] % schedule.chunks:
        raise ScheduleError(
            f"data: expected shape [{schedule.ranks}, {schedule.chunks}·k]; got {list(data.shape)}"
        )
    state = np.zeros((schedule.nodes, schedule.chunks, data.shape[1] // schedule.chunks), data.dtype)
    blocks = data.reshape(schedule.ranks, *state.shape[1:])
    exchanges = schedule.collective == "all-to-all"
    rank = np.arange(schedule.ranks)[:, None]
    state[: schedule.ranks] = blocks[rank, destinations(schedule)] if exchanges else blocks
    for _ in moves(schedule, state, combine):
        pass
    result = state[: schedule.ranks]
    if exchanges:
        ordered = np.empty_like(result)
        ordered[rank, destinations(schedule, back=True)] = result
        result = ordered
    return result.reshape(data.shape)


def destinations(schedule: Schedule, *, back: bool = False) -> np.ndarray:
    """int64[ranks, chunks]: where each block of an all-to-all goes, or where one that has arrived came from.

    The digits of the destination are those of the rank plus those of the chunk, each modulo its unit. Chunks
    have the innermost digit as the most significant.
    """
    found = np.zeros((schedule.ranks, schedule.chunks), np.int64)
    rank, chunk = np.arange(schedule.ranks)[:, None], np.arange(schedule.chunks)
    weight, rest = 1, schedule.chunks
    for unit in schedule.units:
        rest //= unit
        distance = chunk // rest % unit
        found += (rank // weight + (-distance if back else distance)) % unit * weight
        weight *= unit
    return found


def moves(
    schedule: Schedule, state: np.ndarray, combine: np.ufunc
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Carry out round after round in place.

    Args:
        schedule: what to carry out.
        state: [nodes, chunks, ...], changed in place.
        combine: how two values become one.

    Yields:
        After each round its (row of each chunk that moved, what it held: [moved, ...]).
    """
    bounds = np.searchsorted(schedule.round, np.arange(schedule.rounds + 1))
    for low, high in itertools.pairwise(bounds):
        if low == high:
            continue
        row, chunk = _spread(schedule, int(low), int(high))
        carried = state[schedule.source[row], chunk]
        slot, target, combines = schedule.slot[row], schedule.target[row], schedule.combine[row]
        cuts = np.flatnonzero(np.diff(slot)) + 1
        for start, stop in zip([0, *cuts], [*cuts, row.size], strict=True):
            mine = slice(start, stop)
            values = carried[mine]
            into = target[mine], chunk[mine]
            adds = combines[mine]
            if np.any(adds):
                rest = adds.reshape(-1, *[1] * (values.ndim - 1))
                values = np.where(rest, combine(state[into], values), values)
            state[into] = values
        yield row, carried


def _spread(schedule: Schedule, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows low … high−1, one entry per chunk: (row, chunk)."""
    count = schedule.count[low:high]
    row = np.repeat(np.arange(low, high), count)
    offset = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    return row, (schedule.first[row] + offset) % schedule.chunks
