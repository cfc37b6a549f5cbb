"""Trees of ranks that combine k buffers in a round, for any n; k = 2 is the binomial tree.

In round j the ranks whose number is a multiple of k^j but not of k^(j+1) send to the next multiple of k^(j+1)
below: up to k−1 messages into one rank, in as many slots. Broadcast is the same backwards.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def kary_reduce(options: Options) -> Schedule:
    """⌈log_k n⌉ rounds up to rank 0."""
    return _tree("reduce", "k-ary", options.ranks, options.radix_of(0))


def kary_broadcast(options: Options) -> Schedule:
    """⌈log_k n⌉ rounds down from rank 0."""
    return _tree("broadcast", "k-ary", options.ranks, options.radix_of(0))


def kary_all_reduce(options: Options) -> Schedule:
    """Up, then down."""
    return _tree("all-reduce", "k-ary", options.ranks, options.radix_of(0))


def binomial_reduce(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds up to rank 0."""
    return _tree("reduce", "binomial", options.ranks, 2)


def binomial_broadcast(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds down from rank 0."""
    return _tree("broadcast", "binomial", options.ranks, 2)


def binomial_all_reduce(options: Options) -> Schedule:
    """Up, then down."""
    return _tree("all-reduce", "binomial", options.ranks, 2)


def levels(n: int, radix: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Edges of the tree, from the leaves on: (child, parent, place among its siblings) per level."""
    found = []
    distance = 1
    while distance < n:
        node = np.arange(0, n, distance)
        place = node // distance % radix
        child = node[place > 0]
        place = place[place > 0]
        found.append((child, child - place * distance, place - 1))
        distance *= radix
    return found


def _tree(collective: str, algorithm: str, n: int, radix: int) -> Schedule:
    edges = levels(n, radix)
    blocks: list[Block] = []
    if collective != "broadcast":
        for child, parent, slot in edges:
            blocks.append(rows(round=len(blocks), slot=slot, source=child, target=parent, combine=True))
    if collective != "reduce":
        for child, parent, slot in reversed(edges):
            blocks.append(rows(round=len(blocks), slot=slot, source=parent, target=child, combine=False))
    return assemble(blocks, collective=collective, algorithm=algorithm, ranks=n, chunks=1)
