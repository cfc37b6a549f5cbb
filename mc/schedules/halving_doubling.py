"""Recursive halving and doubling: partners at distances that are powers of 2.

All-reduce by doubling exchanges whole buffers; by halving and doubling (Rabenseifner) it is a reduce-scatter
and an all-gather. Both first fold the r = n − p ranks beyond the largest power of 2 onto partners, as MPICH
does. (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19 (2005).) In halving, rank i keeps the half that chunk i
is in, so it ends with chunk i, and all ranges are aligned.

Reduce-scatter and all-gather need no fold: for any n rank i holds a range of n chunks counted from its own,
modulo n (J. Bruck et al., IEEE TPDS 8 (1997); J. L. Träff, arXiv 2410.14234 (2024)); at powers of 2 the
all-gather pairs partners instead, with the same counts.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def recursive_doubling_all_reduce(options: Options) -> Schedule:
    """⌊log₂ n⌋ rounds of B, and two more unless n is a power of 2."""
    n, (power, extra) = options.ranks, _fold(options.ranks)
    rank = np.arange(power)
    blocks = _folding(power, extra, 1)
    start = int(extra > 0)
    blocks += [
        rows(round=start + j, source=rank, target=rank ^ (1 << j), combine=True)
        for j in range(power.bit_length() - 1)
    ]
    blocks += _unfolding(power, extra, 1, len(blocks))
    return assemble(blocks, collective="all-reduce", algorithm="recursive-doubling", ranks=n, chunks=1)


def halving_doubling_all_reduce(options: Options) -> Schedule:
    """2·⌊log₂ n⌋ rounds, and two more unless n is a power of 2."""
    n, (power, extra) = options.ranks, _fold(options.ranks)
    rank = np.arange(power)
    blocks = _folding(power, extra, power)
    distances = [power >> j for j in range(1, power.bit_length())]
    for distance in distances:
        partner = rank ^ distance
        # The half of the partner: aligned ranges of `distance` chunks.
        blocks.append(_exchange(len(blocks), partner, partner & -distance, distance, combine=True))
    for distance in reversed(distances):
        blocks.append(_exchange(len(blocks), rank ^ distance, rank & -distance, distance, combine=False))
    blocks += _unfolding(power, extra, power, len(blocks))
    return assemble(blocks, collective="all-reduce", algorithm="halving-doubling", ranks=n, chunks=power)


def recursive_doubling_all_gather(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds of ranges that double."""
    n = options.ranks
    rank = np.arange(n)
    blocks: list[Block] = []
    distance = 1
    while distance < n:
        if n & (n - 1):
            # Dissemination: rank i holds chunks i, i+1, …
            partner, first, count = (rank - distance) % n, rank, min(distance, n - distance)
        else:
            partner, first, count = rank ^ distance, rank & -distance, distance
        blocks.append(_exchange(len(blocks), partner, first, count, combine=False))
        distance *= 2
    return assemble(
        blocks,
        collective="all-gather",
        algorithm="recursive-doubling",
        ranks=n,
        chunks=n,
        owner=rank,
    )


def recursive_halving_reduce_scatter(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds of ranges that halve: the all-gather by dissemination, backwards."""
    n = options.ranks
    rank = np.arange(n)
    blocks: list[Block] = []
    held = n
    while held > 1:
        distance = 1 << ((held - 1).bit_length() - 1)
        partner = (rank + distance) % n
        blocks.append(_exchange(len(blocks), partner, partner, held - distance, combine=True))
        held = distance
    return assemble(
        blocks,
        collective="reduce-scatter",
        algorithm="recursive-halving",
        ranks=n,
        chunks=n,
        owner=rank,
    )


def _exchange(round_: int, partner: np.ndarray, first: np.ndarray, count: int, *, combine: bool) -> Block:
    """Rank i sends `count` chunks from `first[i]` on to `partner[i]`."""
    source = np.arange(partner.size)
    return rows(round=round_, source=source, target=partner, first=first, count=count, combine=combine)


def _fold(n: int) -> tuple[int, int]:
    """The largest power of 2 up to n, and how many ranks lie beyond."""
    power = 1 << (n.bit_length() - 1)
    return power, n - power


def _folding(power: int, extra: int, chunks: int) -> list[Block]:
    beyond = power + np.arange(extra)
    block = rows(round=0, source=beyond, target=beyond - power, count=chunks, combine=True)
    return [block] if extra else []


def _unfolding(power: int, extra: int, chunks: int, round_: int) -> list[Block]:
    beyond = power + np.arange(extra)
    block = rows(round=round_, source=beyond - power, target=beyond, count=chunks, combine=False)
    return [block] if extra else []
