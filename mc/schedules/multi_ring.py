"""Rings on all links of a torus at once, in d dimensions.

The buffer is cut into 2d parts, one per first dimension and direction. A part is reduce-scattered by rings
along its first dimension, then, with what each rank then holds, along the next one, and so on round; it is
gathered in the opposite order. Broadcast is a scatter, straight from rank 0 through all of its links, and an
all-gather; reduce a reduce-scatter and a gather. In every phase the parts use different links, so that on a torus of equal
sides all 2d links of a rank are busy all the time: 2(n−1)/n·B/2d through each, in 2·Σ(side − 1) rounds.
Messages of rings go to neighbours only. (P. Sack, W. Gropp, "Collective algorithms for multiported torus networks",
ACM TOPC 1 (2015); the order of dimensions rotates as in N. Jain, Y. Sabharwal, "Optimal bucket algorithms for
large MPI collectives on torus interconnects", ICS 2010.)

Ranks are numbered with the first dimension fastest. Port 2·dimension is the link onwards, 2·dimension + 1 the
one back.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def multi_ring_all_reduce(options: Options) -> Schedule:
    """Reduce-scatter, then all-gather."""
    return _rings("all-reduce", options)


def multi_ring_reduce_scatter(options: Options) -> Schedule:
    """Σ(side − 1) rounds."""
    return _rings("reduce-scatter", options)


def multi_ring_all_gather(options: Options) -> Schedule:
    """Σ(side − 1) rounds."""
    return _rings("all-gather", options)


def multi_ring_broadcast(options: Options) -> Schedule:
    """Scatter, then all-gather: 1 + Σ(side − 1) rounds."""
    return _rings("broadcast", options)


def multi_ring_reduce(options: Options) -> Schedule:
    """Reduce-scatter, then gather: Σ(side − 1) + 1 rounds."""
    return _rings("reduce", options)


def _rings(collective: str, options: Options) -> Schedule:
    n = options.ranks
    sides = tuple(side for side in options.units or (n,) if side > 1)
    lanes = max(1, 2 * len(sides))
    blocks: list[Block] = []
    owner = np.zeros(lanes * n, np.int64)
    for lane in range(2 * len(sides)):
        part, positions = _part(collective, sides, lane, n)
        blocks += part
        owner[lane * n + positions] = np.arange(n)
        if collective in ("broadcast", "reduce"):
            blocks.append(_straight(collective, sides, lane, lane * n + positions))
    return assemble(
        blocks,
        collective=collective,
        algorithm="multi-ring",
        ranks=n,
        chunks=lanes * n,
        lanes=lanes,
        ports=lanes,
        owner=owner if collective in ("reduce-scatter", "all-gather") else None,
    )


def _part(collective: str, sides: tuple[int, ...], lane: int, n: int) -> tuple[list[Block], np.ndarray]:
    """The rows of one part, and which of its chunks each rank owns."""
    dimensions = len(sides)
    way = 1 if lane % 2 == 0 else -1
    order = [(lane // 2 + j) % dimensions for j in range(dimensions)]
    phases = []
    start, block, base = 0, n, np.zeros(n, np.int64)
    for dimension in order:
        block //= sides[dimension]
        phases.append((dimension, start, block, base))
        base = base + _coordinate(sides, dimension, n) * block
        start += sides[dimension] - 1

    before = {"all-reduce": start, "broadcast": 1}.get(collective, 0)

    def rounds(phase: int, *, combine: bool) -> Block:
        dimension, begin, count, first = phases[phase]
        side = sides[dimension]
        if not combine:
            # Backwards, after all of the reduce-scatter or the scatter if there is one.
            begin = start - begin - (side - 1) + before
        here = _coordinate(sides, dimension, n)
        weight = int(np.prod(sides[:dimension]))
        rank, step = np.arange(n), np.arange(side - 1)[:, None]
        chunk = (here - way * (step + int(combine))) % side
        return rows(
            round=begin + step,
            slot=lane,
            source=rank,
            target=rank + ((here + way) % side - here) * weight,
            first=lane * n + first + chunk * count,
            count=count,
            combine=combine,
            source_lane=lane,
            target_lane=lane,
            port=2 * dimension + lane % 2,
        )

    blocks = []
    if collective in ("all-reduce", "reduce-scatter", "reduce"):
        blocks += [rounds(phase, combine=True) for phase in range(dimensions)]
    if collective in ("all-reduce", "all-gather", "broadcast"):
        blocks += [rounds(phase, combine=False) for phase in reversed(range(dimensions))]
    return blocks, base


def _straight(collective: str, sides: tuple[int, ...], lane: int, chunk: np.ndarray) -> Block:
    """Between rank 0 and all others, each part through the link of its lane."""
    other = np.arange(1, chunk.size)
    down = collective == "broadcast"
    return rows(
        round=0 if down else sum(sides) - len(sides),
        slot=(other - 1) * 2 * len(sides) + lane,
        source=0 if down else other,
        target=other if down else 0,
        first=chunk[1:],
        combine=False,
        source_lane=lane,
        target_lane=lane,
        port=lane,
    )


def _coordinate(sides: tuple[int, ...], dimension: int, n: int) -> np.ndarray:
    return np.arange(n) // int(np.prod(sides[:dimension])) % sides[dimension]
