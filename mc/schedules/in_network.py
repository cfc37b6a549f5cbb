"""Reduction and multicast in a tree of switches, over one tier or several.

Each tier has a fan-out and a switch radix k: within a unit, k streams meet in a switch of the first level, k
of those in one of the second, and so on, ⌈log_k(fan-out)⌉ levels; the top of a unit is one input of the tier
above. A rank sends its whole buffer into its switch, which takes time for its bytes; from there on data
stream (`cut_through`) and only hops count. All-reduce goes up and down: 2·⌈log_k n⌉ hops. (R. Graham et al.,
COM-HPC 2016.)

Reduce and broadcast count one way only, as the closed form does: the root is attached to the top switch, and
the hand-over there is no hop (`attached`). The last unit of a tier may hold fewer units than the fan-out.
"""

from dataclasses import dataclass

import numpy as np

from mc.schedules.options import Options
from mc.schedules.rows import Block, assemble, rows
from mc.schedules.schedule import Schedule


@dataclass(frozen=True)
class _Level:
    """Edges of one level, nodes numbered as in the schedule."""

    child: np.ndarray
    parent: np.ndarray
    slot: np.ndarray


def in_network_all_reduce(options: Options) -> Schedule:
    """Up and down."""
    return _through_switches("all-reduce", options)


def in_network_reduce(options: Options) -> Schedule:
    """Up."""
    return _through_switches("reduce", options)


def in_network_broadcast(options: Options) -> Schedule:
    """Down."""
    return _through_switches("broadcast", options)


def in_network_barrier(options: Options) -> Schedule:
    """Up and down without data."""
    return _through_switches("barrier", options)


def _through_switches(collective: str, options: Options) -> Schedule:
    n = options.ranks
    levels, tiers, top = _tree(n, options)
    blocks: list[Block] = []
    if collective != "broadcast":
        for level in levels:
            # The first input of a switch fills it, the others are combined with it.
            blocks.append(
                rows(
                    round=len(blocks),
                    slot=level.slot,
                    source=level.child,
                    target=level.parent,
                    combine=level.slot > 0,
                    cut_through=level.child >= n,
                )
            )
    if n > 1 and collective == "reduce":
        blocks.append(rows(round=len(blocks), source=top, target=0, cut_through=True, attached=True))
    if n > 1 and collective == "broadcast":
        blocks.append(rows(round=0, source=0, target=top, attached=True))
    if collective != "reduce":
        for level in reversed(levels):
            wanted = level.child > 0 if collective == "broadcast" else slice(None)
            child, parent, slot = level.child[wanted], level.parent[wanted], level.slot[wanted]
            blocks.append(rows(round=len(blocks), slot=slot, source=parent, target=child, cut_through=True))
    return assemble(
        blocks,
        collective=collective,
        algorithm="in-network",
        ranks=n,
        chunks=1,
        switches=tiers.size,
        switch_tiers=tiers,
        rendezvous=False,
        piece_shares=np.zeros(1) if collective == "barrier" else None,
        units=options.units,
    )


def _tree(n: int, options: Options) -> tuple[list[_Level], np.ndarray, int]:
    """Levels from the ranks on, the tier of each switch, and the switch on top."""
    levels: list[_Level] = []
    tiers: list[np.ndarray] = []
    frontier = np.arange(n)  # what is to be combined next
    fresh = n
    for tier, fan_out in enumerate(options.units or (n,)):
        radix = options.radix_of(tier)
        unit, place = np.divmod(np.arange(frontier.size), fan_out)
        while True:
            # Units with one node left are done here and wait for the next tier.
            busy = np.bincount(unit)[unit] > 1
            if not np.any(busy):
                break
            parent_place = np.where(busy, place // radix, 0)
            heads = ~busy | (place % radix == 0)
            position = np.cumsum(heads) - 1  # of the parent in the next frontier
            made = heads & busy
            nodes = np.where(busy[heads], fresh + np.cumsum(made)[heads] - 1, frontier[heads])
            levels.append(_Level(frontier[busy], nodes[position[busy]], place[busy] % radix))
            count = int(np.count_nonzero(made))
            tiers.append(np.full(count, tier, np.int8))
            fresh += count
            frontier, unit, place = nodes, unit[heads], parent_place[heads]
    return levels, np.concatenate([np.zeros(0, np.int8), *tiers]), int(frontier[0])
