"""Collectives straight from rank to rank, all messages of a round at once, for ranks with a link to each other.

A reduce-scatter sends each rank its chunk, an all-gather sends each chunk to all: one round with n−1 messages
of B/n. All-reduce is both in two rounds ("two-shot"); broadcast is a scatter and an all-gather, reduce a
reduce-scatter and a gather.

One-shot all-reduce sends the whole buffer to all others, which add up what they get: one round, paid with n−1
buffers through every port. (NVIDIA TensorRT-LLM's custom all-reduce kernels have both strategies.)
"""

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def direct_reduce_scatter(options: Options) -> Schedule:
    """One round; each rank sends every other rank's chunk to it."""
    n = options.ranks
    return _schedule("reduce-scatter", n, [_to_owners(n, 0)])


def direct_all_gather(options: Options) -> Schedule:
    """One round; each rank sends its chunk to every other rank."""
    n = options.ranks
    return _schedule("all-gather", n, [_to_all(n, 0)])


def direct_all_reduce(options: Options) -> Schedule:
    """Two rounds: reduce-scatter and all-gather."""
    n = options.ranks
    return _schedule("all-reduce", n, [_to_owners(n, 0), _to_all(n, 1)])


def direct_broadcast(options: Options) -> Schedule:
    """Two rounds: scatter from rank 0, and all-gather."""
    n = options.ranks
    other = np.arange(1, n)
    scatter = rows(round=0, slot=other - 1, source=0, target=other, first=other, combine=False)
    # Rank 0 has all of it.
    gather = _to_all(n, 1)
    needed = gather["target"] != 0
    return _schedule("broadcast", n, [scatter, {name: each[needed] for name, each in gather.items()}])


def direct_reduce(options: Options) -> Schedule:
    """Two rounds: reduce-scatter, and gather to rank 0."""
    n = options.ranks
    other = np.arange(1, n)
    gather = rows(round=1, slot=other - 1, source=other, target=0, first=other, combine=False)
    return _schedule("reduce", n, [_to_owners(n, 0), gather])


def one_shot_all_reduce(options: Options) -> Schedule:
    """One round with n−1 messages of B."""
    n = options.ranks
    distance, rank = _everyone(n)
    block = rows(round=0, slot=distance - 1, source=rank, target=(rank + distance) % n, combine=True)
    return assemble(
        [block] if n > 1 else [], collective="all-reduce", algorithm="one-shot", ranks=n, chunks=1
    )


def _everyone(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances as rows, ranks as columns; the nearest are served first."""
    return np.arange(1, n, dtype=np.int32)[:, None], np.arange(n, dtype=np.int32)


def _to_owners(n: int, round_: int) -> Block:
    distance, rank = _everyone(n)
    target = (rank + distance) % n
    return rows(round=round_, slot=distance - 1, source=rank, target=target, first=target, combine=True)


def _to_all(n: int, round_: int) -> Block:
    distance, rank = _everyone(n)
    target = (rank + distance) % n
    return rows(round=round_, slot=distance - 1, source=rank, target=target, first=rank, combine=False)


def _schedule(collective: str, n: int, blocks: list[Block]) -> Schedule:
    return assemble(
        blocks if n > 1 else [],
        collective=collective,
        algorithm="direct",
        ranks=n,
        chunks=n,
        owner=np.arange(n) if collective in ("reduce-scatter", "all-gather") else None,
    )
