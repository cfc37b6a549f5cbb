"""Which tiers a group of ranks spans.

A group is consecutive ranks from the start of a unit, so it fills inner tiers before it takes another unit of
an outer one. (A group whose ranks are a stride apart would skip the tiers inside the stride; it would be one
more argument here and nothing elsewhere.)

Units need not be alike: the last may be incomplete, and a cluster may have units of several sizes or with
other links. What a tier sees of that is a few kinds of units (`Kind`), however many units there are.
"""

from dataclasses import dataclass
from functools import lru_cache

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from mc.config.layout import FanOut
from mc.fabric.cluster import Cluster, FabricError, Tier
from mc.fabric.units import starts

# Numbers of the variations that hold for a rank; empty for one like its tier.
Combination = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """Units of a tier that do the same.

    Attributes:
        units: how many units of the tier below the group reaches in each.
        count: how many such units there are.
        links: the combinations of the tier's variations that hold for ranks of theirs.
    """

    units: int
    count: int
    links: tuple[Combination, ...] = ((),)


class Extent(eqx.Module):
    """The part of a tier that a group spans.

    Attributes:
        tier: the tier.
        index: its place in the cluster, 0 innermost.
        units: how many units of the tier below the group reaches in one unit of this tier, the most, at least
            2.
        ranks_per_unit: how many ranks a unit of the tier below holds, the largest if they differ.
        even: whether the group has as many ranks in each unit of the tier below that it reaches.
        fewest_ranks: how many of the group a unit of the tier below holds at least.
        units_in_all: how many units of the tier below the group reaches in the whole cluster.
        kinds: the units of this tier that it reaches, by what they do.
    """

    tier: Tier
    index: int = eqx.field(static=True)
    units: int = eqx.field(static=True)
    ranks_per_unit: int = eqx.field(static=True)
    even: bool = eqx.field(static=True)
    fewest_ranks: int = eqx.field(static=True)
    units_in_all: int = eqx.field(static=True)
    kinds: tuple[Kind, ...] = eqx.field(static=True)

    @property
    def fewest_units(self) -> int:
        """How many units of the tier below the group reaches in one of this tier at least."""
        return min(kind.units for kind in self.kinds)

    @property
    def links(self) -> tuple[Combination, ...]:
        """The combinations of the tier's variations that hold for some rank of the group."""
        return tuple(sorted({each for kind in self.kinds for each in kind.links}))


def span(cluster: Cluster, ranks: int) -> tuple[Extent, ...]:
    """The tiers that `ranks` consecutive ranks span, innermost first.

    1024 ranks on fan-outs (8, 32, 4) span (8, 32, 4) units; 12 ranks span 8 and ⌈12/8⌉ = 2, the second
    unevenly. A tier of which the group reaches one unit only is left out, so one rank spans nothing.

    Args:
        cluster: the cluster.
        ranks: how many ranks the group has, at least 1.

    Raises:
        FabricError: there are no such groups on the cluster.
    """
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise FabricError(f"ranks: expected a whole number of at least 1; got {ranks!r}")
    if ranks > cluster.size:
        raise FabricError(
            f"ranks: expected at most {cluster.size_text}, the size of `{cluster.name}`; "
            f"a group of {ranks} does not fit"
        )
    alike = all(tier.sizes is None and not tier.variations for tier in cluster.tiers)
    found = _among_equals(cluster, ranks) if alike else _one_by_one(cluster, ranks)
    return tuple(extent for extent in found if extent.units > 1)


def is_even(extents: tuple[Extent, ...]) -> bool:
    """Whether the group is the product of its extents, so that every unit of a tier does the same."""
    return all(extent.even for extent in extents)


def _among_equals(cluster: Cluster, ranks: int) -> list[Extent]:
    found: list[Extent] = []
    below = 1
    for index, tier in enumerate(cluster.tiers):
        whole, rest = divmod(ranks, below * tier.fan_out)
        kinds = ((tier.fan_out, whole), (-(-rest // below), int(rest > 0)))
        kinds = tuple(Kind(units, count) for units, count in kinds if count)
        in_all = -(-ranks // below)
        fewest = ranks - (in_all - 1) * below
        units = max(kind.units for kind in kinds)
        found.append(Extent(tier, index, units, below, fewest == below, fewest, in_all, kinds))
        below *= tier.fan_out
    return found


def _one_by_one(cluster: Cluster, ranks: int) -> list[Extent]:
    varied = tuple(tuple((each.of, each.units) for each in tier.variations) for tier in cluster.tiers)
    found = _counted(cluster.fan_outs, varied, ranks)
    return [
        Extent(tier, index, *each)
        for index, (tier, each) in enumerate(zip(cluster.tiers, found, strict=True))
    ]


_Counts = tuple[int, int, bool, int, int, tuple[Kind, ...]]


@lru_cache(maxsize=64)
def _counted(
    fan_outs: tuple[FanOut, ...], varied: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...], ranks: int
) -> tuple[_Counts, ...]:
    """What `Extent` says of each tier, counted rank by rank; structure only, so it is counted once."""
    single = np.arange(ranks + 1)
    firsts = [single, *starts(fan_outs)]
    # Per tier and before it for ranks themselves, which unit a rank is in.
    units = [np.searchsorted(first, single[:-1], side="right") - 1 for first in firsts]
    found: list[_Counts] = []
    for index, variations in enumerate(varied):
        below, own = units[index], units[index + 1]
        held = np.bincount(below)
        # Which unit of this tier each unit below belongs to, and how many of them each has.
        members = np.bincount(own[np.minimum(firsts[index][: held.size], ranks - 1)])
        holds = np.zeros((len(variations), ranks), np.bool_)
        for row, (of, chosen) in zip(holds, variations, strict=True):
            row[:] = np.isin(units[of + 1], chosen)
        sizes = np.diff(firsts[index])[: held.size]
        found.append(
            (
                int(members.max()),
                int(sizes.max()),
                bool(np.all(held == held[0])),
                int(held.min()),
                held.size,
                _kinds(members, holds, own),
            )
        )
    return tuple(found)


def _kinds(members: NDArray[np.int64], holds: NDArray[np.bool_], own: NDArray[np.int64]) -> tuple[Kind, ...]:
    """The distinct pairs of (units below, combinations of variations) among the units of a tier."""
    links: dict[int, list[Combination]] = {}
    if holds.size:
        # One number for each combination that occurs, then the pairs of unit and combination.
        combinations, which = np.unique(holds, axis=1, return_inverse=True)
        named = [tuple(np.flatnonzero(column).tolist()) for column in combinations.T]
        for pair in np.unique(own * len(named) + which.ravel()).tolist():
            links.setdefault(pair // len(named), []).append(named[pair % len(named)])
    counts: dict[tuple[int, tuple[Combination, ...]], int] = {}
    for unit, size in enumerate(members.tolist()):
        key = (size, tuple(sorted(links.get(unit, [()]))))
        counts[key] = counts.get(key, 0) + 1
    return tuple(Kind(size, count, each) for (size, each), count in counts.items())
