"""All-to-all: direct, pairwise, Bruck; and send-recv.

Chunks are numbered by how far they go: chunk d of rank i is for rank i + d, and arrives there as chunk d,
which then is what rank i of distance d sent. So a block keeps its number wherever it is, the blocks that
Bruck's algorithm moves in a round are ranges, and n chunks do. `execute.py` translates from and to the usual
order. (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19 (2005); J. Bruck et al., IEEE TPDS 8 (1997).)
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def direct_all_to_all(options: Options) -> Schedule:
    """One round with all n−1 messages of a rank, nearest first."""
    return _by_distance("direct", options)


def pairwise_all_to_all(options: Options) -> Schedule:
    """n−1 rounds; in the d-th, rank i sends to i + d."""
    return _by_distance("pairwise", options)


def _by_distance(algorithm: str, options: Options) -> Schedule:
    n = options.ranks
    distance, rank = np.arange(1, n, dtype=np.int32)[:, None], np.arange(n, dtype=np.int32)
    place = "slot" if algorithm == "direct" else "round"
    block = rows(
        **({"round": 0} | {place: distance - 1}),
        source=rank,
        target=(rank + distance) % n,
        first=distance,
        combine=False,
    )
    return assemble([block] if n > 1 else [], collective="all-to-all", algorithm=algorithm, ranks=n, chunks=n)


def bruck_all_to_all(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds; in the j-th the blocks go on whose distance has bit j."""
    n = options.ranks
    rank = np.arange(n)[:, None]
    blocks: list[Block] = []
    for j in range((n - 1).bit_length()):
        step = 1 << j
        first = np.arange(step, n, 2 * step)
        blocks.append(
            rows(
                round=j,
                source=rank,
                target=(rank + step) % n,
                first=first,
                count=np.minimum(step, n - first),
                combine=False,
            )
        )
    return assemble(blocks, collective="all-to-all", algorithm="bruck", ranks=n, chunks=n)


def direct_send_recv(options: Options) -> Schedule:
    """Each rank sends its buffer to the next one."""
    n = options.ranks
    rank = np.arange(n)
    block = rows(round=0, source=rank, target=(rank + 1) % n, combine=False)
    return assemble([block] if n > 1 else [], collective="send-recv", algorithm="direct", ranks=n, chunks=1)
