"""All-to-all with a matrix of bytes: what each message of any schedule then carries.

The schedule is carried out on the sizes of the blocks instead of their contents, so a block that travels
several times (Bruck's algorithm, a hierarchical form) counts in every message that has it.
"""

import dataclasses

import numpy as np

from mc.schedules.execute import destinations, moves
from mc.schedules.schedule import Schedule


def weighted(schedule: Schedule, byte_matrix: np.ndarray) -> Schedule:
    """The same messages with other sizes.

    Args:
        schedule: an all-to-all.
        byte_matrix: float64[n, n], bytes from i to j; what a rank keeps (the diagonal) counts as part of its
            buffer.

    Returns:
        A schedule whose buffer is the mean of the row sums, so that with equal entries nothing changes.
    """
    n = schedule.ranks
    sizes = byte_matrix[np.arange(n)[:, None], destinations(schedule)]
    carried = np.zeros(schedule.rows)
    for row, moved in moves(schedule, sizes, np.add):
        carried[row[0] : row[-1] + 1] = np.bincount(row - row[0], moved)
    mean = float(byte_matrix.sum()) / n
    return dataclasses.replace(schedule, piece_shares=carried / mean if mean > 0 else carried)
