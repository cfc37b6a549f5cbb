"""Gather and scatter between rank 0 and all others: by a binomial tree, or straight.

In the tree a rank that is a multiple of 2^j passes on the parts of the 2^j ranks from itself on: each part
travels as many times as its rank has ones. (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19 (2005).)
"""

import numpy as np

from mc.schedules.kary import levels
from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


def binomial_gather(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds of ranges that double."""
    return _binomial("gather", options.ranks)


def binomial_scatter(options: Options) -> Schedule:
    """⌈log₂ n⌉ rounds of ranges that halve."""
    return _binomial("scatter", options.ranks)


def direct_gather(options: Options) -> Schedule:
    """All n−1 messages at once; they share the port of rank 0."""
    return _direct("gather", options.ranks)


def direct_scatter(options: Options) -> Schedule:
    """All n−1 messages at once; they share the port of rank 0."""
    return _direct("scatter", options.ranks)


def _binomial(collective: str, n: int) -> Schedule:
    edges = [(child, parent) for child, parent, _ in levels(n, 2)]
    gathers = collective == "gather"
    blocks: list[Block] = []
    for child, parent in edges if gathers else reversed(edges):
        blocks.append(
            rows(
                round=len(blocks),
                source=child if gathers else parent,
                target=parent if gathers else child,
                first=child,
                count=np.minimum(child - parent, n - child),
                combine=False,
            )
        )
    return _schedule(blocks, collective, "binomial", n)


def _direct(collective: str, n: int) -> Schedule:
    other = np.arange(1, n)
    source, target = (other, 0) if collective == "gather" else (0, other)
    block = rows(round=0, slot=other - 1, source=source, target=target, first=other, combine=False)
    return _schedule([block] if n > 1 else [], collective, "direct", n)


def _schedule(blocks: list[Block], collective: str, algorithm: str, n: int) -> Schedule:
    return assemble(blocks, collective=collective, algorithm=algorithm, ranks=n, chunks=n, owner=np.arange(n))
