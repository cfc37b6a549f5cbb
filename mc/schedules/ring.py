"""Rings: reduce-scatter, all-gather and all-reduce, in one direction or both, and pipelined chains.

In the reduce-scatter the sum for rank c sets out from rank c+1 and arrives after n−1 steps round the ring; in
the all-gather each rank's part does. (P. Patarasuk, X. Yuan, JPDC 69 (2009).) The bidirectional ring cuts
every part in two and sends the halves round in opposite directions at once: two lanes, each with a port of
its own where the fabric has one per direction.

A chain carries whole buffers in pieces: piece p leaves the i-th rank of the chain in round i + p, so no piece
waits for the one before.
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule

# Direction of each lane.
_ONE_WAY, _BOTH_WAYS = (1,), (1, -1)


def ring_reduce_scatter(options: Options) -> Schedule:
    """n−1 rounds of B/n; rank i ends with the sum of chunk i."""
    return _parts("reduce-scatter", "ring", options, _ONE_WAY)


def ring_all_gather(options: Options) -> Schedule:
    """n−1 rounds of B/n."""
    return _parts("all-gather", "ring", options, _ONE_WAY)


def ring_all_reduce(options: Options) -> Schedule:
    """Reduce-scatter, then all-gather: 2(n−1) rounds of B/n."""
    return _parts("all-reduce", "ring", options, _ONE_WAY)


def bidirectional_reduce_scatter(options: Options) -> Schedule:
    """n−1 rounds of B/2n to either side."""
    return _parts("reduce-scatter", "bidirectional-ring", options, _BOTH_WAYS)


def bidirectional_all_gather(options: Options) -> Schedule:
    """n−1 rounds of B/2n to either side."""
    return _parts("all-gather", "bidirectional-ring", options, _BOTH_WAYS)


def bidirectional_all_reduce(options: Options) -> Schedule:
    """2(n−1) rounds of B/2n to either side."""
    return _parts("all-reduce", "bidirectional-ring", options, _BOTH_WAYS)


def _parts(collective: str, algorithm: str, options: Options, directions: tuple[int, ...]) -> Schedule:
    n, lanes = options.ranks, len(directions)
    blocks: list[Block] = []
    start = 0
    if n > 1:
        if collective != "all-gather":
            blocks.append(_round_trip(n, directions, start, combine=True))
            start = n - 1
        if collective != "reduce-scatter":
            blocks.append(_round_trip(n, directions, start, combine=False))
    return assemble(
        blocks,
        collective=collective,
        algorithm=algorithm,
        ranks=n,
        chunks=n * lanes,
        lanes=lanes,
        ports=lanes,
        # Chunk c belongs to rank c // lanes and travels in lane c % lanes.
        owner=None if collective == "all-reduce" else np.arange(n * lanes) // lanes,
    )


def _round_trip(n: int, directions: tuple[int, ...], start: int, *, combine: bool) -> Block:
    """n−1 rounds; when combining, parts set out one rank earlier and so end where they belong."""
    step = np.arange(n - 1, dtype=np.int32)[:, None, None]
    lane = np.arange(len(directions), dtype=np.int32)[:, None]
    way = np.asarray(directions, np.int32)[:, None]
    rank = np.arange(n, dtype=np.int32)
    part = (rank - way * (step + int(combine))) % n
    return rows(
        round=start + step,
        slot=lane,
        source=rank,
        target=(rank + way) % n,
        first=part * len(directions) + lane,
        combine=combine,
        **({"source_lane": lane, "target_lane": lane, "port": lane} if len(directions) > 1 else {}),
    )


def chain_broadcast(options: Options) -> Schedule:
    """From rank 0 along 1, 2, …: n−1 rounds, and one more per further piece."""
    return _chain("broadcast", options)


def chain_reduce(options: Options) -> Schedule:
    """From rank n−1 down to rank 0, combined on the way."""
    return _chain("reduce", options)


def _chain(collective: str, options: Options) -> Schedule:
    n, pieces = options.ranks, options.pieces
    place = np.arange(n - 1, dtype=np.int32)
    piece = np.arange(pieces, dtype=np.int32)[:, None]
    up = collective == "reduce"
    source = n - 1 - place if up else place
    block = rows(
        round=place + piece,
        source=source,
        target=source - 1 if up else source + 1,
        first=piece,
        combine=up,
    )
    return assemble(
        [block] if n > 1 else [],
        collective=collective,
        algorithm="ring",
        ranks=n,
        chunks=pieces,
        rendezvous=False,
    )
