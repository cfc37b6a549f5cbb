"""Where ranks are: their units, the tier that a message crosses, the hops it takes.

Vectorised NumPy on the cluster's structure alone: no number of a link is looked at. Works for units of any sizes; ranks are
numbered consecutively, whatever is missing.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.config.layout import FanOut
from mc.fabric.cluster import Cluster, FabricError
from mc.fabric.shape import Torus
from mc.fabric.units import starts
from mc.fabric.variation import RANK


def unit_of(cluster: Cluster, tier_index: int, rank: Any) -> NDArray[np.int64]:
    """Which unit of a tier a rank belongs to, counted through the whole cluster.

    Args:
        cluster: the cluster.
        tier_index: 0 innermost; −1 for single ranks, each its own unit.
        rank: ranks, of any shape.

    Raises:
        FabricError: there is no such tier or rank.
    """
    rank = np.asarray(rank, np.int64)
    if rank.size and (rank.min() < 0 or rank.max() >= cluster.size):
        raise FabricError(
            f"rank: expected ranks from 0 to {cluster.size - 1}; got {rank.min()} to {rank.max()}"
        )
    if not RANK <= tier_index < len(cluster.tiers):
        raise FabricError(
            f"tier: expected an index from {RANK} to {len(cluster.tiers) - 1}; got {tier_index}"
        )
    return _unit_of(cluster, tier_index, rank)


def crossing(cluster: Cluster, source: Any, target: Any) -> NDArray[np.int8]:
    """Index of the outermost tier that a message crosses; −1 for a message of a rank to itself.

    Args:
        cluster: the cluster.
        source: sending ranks, of any shape.
        target: receiving ranks, likewise.
    """
    source, target = np.broadcast_arrays(np.asarray(source, np.int64), np.asarray(target, np.int64))
    found = np.full(source.shape, RANK, np.int8)
    for index in range(RANK, len(cluster.tiers) - 1):
        # Ranks in different units of one tier meet in the next one or further out.
        found += unit_of(cluster, index, source) != unit_of(cluster, index, target)
    return found


def hops(cluster: Cluster, source: Any, target: Any) -> NDArray[np.int64]:
    """Links that a message passes on the outermost tier it crosses: the distance on a torus, 1 elsewhere.

    0 for a message of a rank to itself.
    """
    source, target = np.broadcast_arrays(np.asarray(source, np.int64), np.asarray(target, np.int64))
    tier = crossing(cluster, source, target)
    found = (tier >= 0).astype(np.int64)
    for index, each in enumerate(cluster.tiers):
        if isinstance(each.shape, Torus):
            here = tier == index
            first, second = (
                _unit_of(cluster, index - 1, ranks[here]) % each.shape.size for ranks in (source, target)
            )
            found[here] = each.shape.distance(first, second)
    return found


def _unit_of(cluster: Cluster, tier_index: int, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    if tier_index == RANK:
        return rank
    inner = cluster.fan_outs[: tier_index + 1]
    if all(isinstance(each, int) for each in inner):
        return rank // math.prod(inner)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return np.searchsorted(_starts(cluster.fan_outs)[tier_index], rank, side="right") - 1


@lru_cache(maxsize=64)
def _starts(fan_outs: tuple[FanOut, ...]) -> tuple[NDArray[np.int64], ...]:
    return starts(fan_outs)
