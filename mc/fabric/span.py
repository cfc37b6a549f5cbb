"""Which tiers a group of ranks spans.

A group given by its number is consecutive ranks from the start of a unit, so it fills inner tiers before it
takes another unit of an outer one. A group given by axes (`mc.config.axes`) skips the tiers inside its strides,
and stands for all groups that lie so, side by side through the whole cluster: if they lie differently, as groups of
six do in units of eight, then each tier counts as the group that has the most units there.

Units need not be alike: the last may be incomplete, and a cluster may have units of several sizes or with
other links. What a tier sees of that is a few kinds of units (`Kind`), however many units there are.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from mc.config.axes import Axes, count, joined, reach
from mc.config.layout import FanOut
from mc.config.layout import size as layout_size
from mc.fabric.cluster import Cluster, FabricError, Tier
from mc.fabric.units import starts

# Numbers of the variations that hold for a rank; empty for one like its tier.
Combination = tuple[int, ...]
# A group: how many consecutive ranks, or axes.
Ranks = int | Axes


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
        axes: where the units of the tier below that it reaches lie in one of this tier.
        most_ranks: how many of the group a unit of the tier below holds at most.
    """

    tier: Tier
    index: int = eqx.field(static=True)
    units: int = eqx.field(static=True)
    ranks_per_unit: int = eqx.field(static=True)
    even: bool = eqx.field(static=True)
    fewest_ranks: int = eqx.field(static=True)
    units_in_all: int = eqx.field(static=True)
    kinds: tuple[Kind, ...] = eqx.field(static=True)
    axes: Axes = eqx.field(static=True)
    most_ranks: int = eqx.field(static=True)

    @property
    def fewest_units(self) -> int:
        """How many units of the tier below the group reaches in one of this tier at least."""
        return min(kind.units for kind in self.kinds)

    @property
    def links(self) -> tuple[Combination, ...]:
        """The combinations of the tier's variations that hold for some rank of the group."""
        return tuple(sorted({each for kind in self.kinds for each in kind.links}))


def span(cluster: Cluster, ranks: Ranks, stride: int = 1) -> tuple[Extent, ...]:
    """The tiers that a group spans, innermost first.

    1024 ranks on fan-outs (8, 32, 4) span (8, 32, 4) units; 12 ranks span 8 and ⌈12/8⌉ = 2, the second
    unevenly. With stride 8, 64 ranks span 32 and 2 units of the two outer tiers and have one rank in each node. A tier
    of which the group reaches one unit only is left out, so one rank spans nothing.

    Args:
        cluster: the cluster.
        ranks: how many ranks the group has, at least 1; or its axes.
        stride: how far apart they are, where `ranks` is a number.

    Raises:
        FabricError: there are no such groups on the cluster.
    """
    axes = joined(ranks) if isinstance(ranks, tuple) else ((ranks, stride),)
    _check(cluster, axes)
    side_by_side = isinstance(ranks, tuple) or stride > 1
    found = None
    if all(tier.sizes is None and not tier.variations for tier in cluster.tiers):
        found = _alike(cluster, axes) if side_by_side else _from_the_start(cluster, count(axes))
    if found is None:
        found = _one_by_one(cluster, axes, side_by_side=side_by_side)
    return tuple(extent for extent in found if extent.units > 1)


def tier_of(cluster: Cluster, ranks: Ranks, stride: int = 1) -> Tier | None:
    """The outermost tier that a group spans, arguments as for `span`; None for a single rank."""
    extents = span(cluster, ranks, stride)
    return extents[-1].tier if extents else None


def _check(cluster: Cluster, axes: Axes) -> None:
    for name, least in (("ranks", 1), ("stride", 1)):
        for each in axes:
            value = each[name == "stride"]
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise FabricError(f"{name}: expected a whole number of at least {least}; got {value!r}")
    last = sum((size - 1) * stride for size, stride in axes)
    if last < cluster.size:
        return
    apart = ", ".join(f"{size} ranks {stride} apart" for size, stride in axes if stride > 1)
    ranks = count(axes)
    group = f"{apart} do" if apart else f"a group of {ranks} does"
    raise FabricError(
        f"ranks: expected at most {cluster.size_text}, the size of `{cluster.name}`; {group} not fit"
    )


def is_even(extents: tuple[Extent, ...]) -> bool:
    """Whether the group is the product of its extents, so that every unit of a tier does the same."""
    return all(extent.even for extent in extents)


def _from_the_start(cluster: Cluster, ranks: int) -> list[Extent]:
    """Consecutive ranks on a cluster whose units are alike."""
    found: list[Extent] = []
    below = 1
    for index, tier in enumerate(cluster.tiers):
        whole, rest = divmod(ranks, below * tier.fan_out)
        kinds = ((tier.fan_out, whole), (-(-rest // below), int(rest > 0)))
        kinds = tuple(Kind(units, count) for units, count in kinds if count)
        in_all = -(-ranks // below)
        fewest = ranks - (in_all - 1) * below
        units, even = max(kind.units for kind in kinds), fewest == below
        axes, most = ((units, 1),), min(ranks, below)
        found.append(Extent(tier, index, units, below, even, fewest, in_all, kinds, axes, most))
        below *= tier.fan_out
    return found


def _alike(cluster: Cluster, axes: Axes) -> list[Extent] | None:
    """Groups with these axes on a cluster whose units are alike; None if they lie differently on it."""
    ends = list(
        itertools.accumulate((tier.fan_out for tier in cluster.tiers), lambda one, other: one * other)
    )
    on_tiers = reach(axes, ends)
    if on_tiers is None:
        return None
    found: list[Extent] = []
    in_all, below, ranks = count(axes), 1, count(axes)
    for index, (tier, each, end) in enumerate(zip(cluster.tiers, on_tiers, ends, strict=True)):
        units, held = count(each), ranks // in_all
        kinds = (Kind(units, in_all // units),)
        found.append(Extent(tier, index, units, below, True, held, in_all, kinds, each, held))
        in_all, below = in_all // units, end
    return found


def _one_by_one(cluster: Cluster, axes: Axes, *, side_by_side: bool) -> list[Extent]:
    varied = tuple(tuple((each.of, each.units) for each in tier.variations) for tier in cluster.tiers)
    node = cluster.fan_outs[0]
    alike = 1
    if side_by_side and isinstance(node, int) and not any(varied):
        alike = math.gcd(node, *(stride for _, stride in axes))
    if alike > 1 and isinstance(node, int):
        # So many groups, one rank apart, lie alike, and one of them is counted.
        apart = tuple((size, stride // alike) for size, stride in axes)
        found = _counted((node // alike, *cluster.fan_outs[1:]), varied, apart, side_by_side)
        found = tuple(_repeated(each, alike, first=index == 0) for index, each in enumerate(found))
    else:
        found = _counted(cluster.fan_outs, varied, axes, side_by_side)
    stride = axes[0][1] if len(axes) == 1 else 1
    return [
        Extent(
            tier,
            index,
            each.units,
            each.ranks_per_unit,
            each.even,
            each.fewest_ranks,
            each.units_in_all,
            each.kinds,
            ((each.units, max(1, stride // each.ranks_per_unit)),),
            each.most_ranks,
        )
        for index, (tier, each) in enumerate(zip(cluster.tiers, found, strict=True))
    ]


class _Counts(NamedTuple):
    """What `Extent` says of a tier, but for where its units are."""

    units: int
    ranks_per_unit: int
    even: bool
    fewest_ranks: int
    units_in_all: int
    kinds: tuple[Kind, ...]
    most_ranks: int


def _repeated(one: _Counts, times: int, *, first: bool) -> _Counts:
    """What was counted in a cluster of so many times fewer ranks; below the first tier are ranks themselves."""
    kinds = tuple(Kind(kind.units, kind.count * times, kind.links) for kind in one.kinds)
    return one._replace(kinds=kinds, ranks_per_unit=one.ranks_per_unit * (1 if first else times))


_Varied = tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]


@lru_cache(maxsize=4096)
def _counted(
    fan_outs: tuple[FanOut, ...],
    varied: _Varied,
    axes: Axes,
    side_by_side: bool,  # noqa: FBT001
) -> tuple[_Counts, ...]:
    """What `Extent` says of each tier, counted rank by rank; structure only, so it is counted once.

    Ranks rise within a group, so those in one unit follow one another: each tier starts from the units that the groups reach
    in the tier below.
    """
    firsts = starts(fan_outs)
    groups = _groups(axes, layout_size(fan_outs)) if side_by_side else np.arange(count(axes))[None]
    ranks = groups.ravel()
    of_group = np.repeat(np.arange(groups.shape[0]), groups.shape[1])
    own = np.arange(ranks.size)
    held = np.ones(ranks.size, np.int64)
    reached, group, in_unit = ranks, of_group, ranks
    found: list[_Counts] = []
    for index, variations in enumerate(varied):
        above = np.searchsorted(firsts[index], reached, side="right") - 1
        begins = np.flatnonzero(_differs(group) | _differs(above))
        members = np.diff(np.append(begins, reached.size))
        # Of each rank, which of all these pairs of a group and a unit it is in.
        own = np.repeat(np.arange(begins.size), members)[own] if any(varied) else own
        holds = np.zeros((len(variations), ranks.size), np.bool_)
        for row, (of, chosen) in zip(holds, variations, strict=True):
            # Before the innermost tier come ranks themselves.
            units = ranks if of < 0 else np.searchsorted(firsts[of], ranks, side="right") - 1
            row[:] = np.isin(units, chosen)
        sizes = np.ones(1, np.int64) if index == 0 else np.diff(firsts[index - 1])[in_unit]
        in_all = np.bincount(group)
        found.append(
            _Counts(
                int(members.max()),
                int(sizes.max()),
                bool(np.all(held == held[0]) and np.all(in_all == in_all[0])),
                int(held.min()),
                int(in_all.max()),
                _kinds(members, holds, own),
                int(held.max()),
            )
        )
        held = np.add.reduceat(held, begins)
        reached, group, in_unit = reached[begins], group[begins], above[begins]
    return tuple(found)


def _differs(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a number is another than the one before it."""
    return np.append(True, numbers[1:] != numbers[:-1])


def _groups(axes: Axes, size: int) -> NDArray[np.int64]:
    """int64[groups, ranks]: all groups with these axes, side by side as far as the cluster goes."""
    one = np.zeros(1, np.int64)
    for extent, stride in axes:
        one = (one + np.arange(extent)[:, None] * stride).ravel()
    block = axes[-1][0] * axes[-1][1]
    first = np.arange(min(max(block, size // block * block), size))
    for extent, stride in axes:
        first = first[first // stride % extent == 0]
    first = first[first + one.max() < size]
    return first[:, None] + one


def _kinds(members: NDArray[np.int64], holds: NDArray[np.bool_], own: NDArray[np.int64]) -> tuple[Kind, ...]:
    """The distinct pairs of (units below, combinations of variations) among the units of a tier."""
    links: dict[int, list[Combination]] = {}
    if holds.size:
        # One number for each combination that occurs, then the pairs of unit and combination.
        combinations, which = np.unique(holds, axis=1, return_inverse=True)
        named = [tuple(np.flatnonzero(column).tolist()) for column in combinations.T]
        for pair in np.unique(own * len(named) + which.ravel()).tolist():
            links.setdefault(pair // len(named), []).append(named[pair % len(named)])
    if not links:
        return tuple(Kind(int(size), int(number)) for size, number in zip(*_in_order(members), strict=True))
    counts: dict[tuple[int, tuple[Combination, ...]], int] = {}
    for unit, size in enumerate(members.tolist()):
        key = (size, tuple(sorted(links.get(unit, [()]))))
        counts[key] = counts.get(key, 0) + 1
    return tuple(Kind(size, count, each) for (size, each), count in counts.items())


def _in_order(members: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers and how often each occurs, in the order in which they first do."""
    sizes, first, number = np.unique(members, return_index=True, return_counts=True)
    order = np.argsort(first)
    return sizes[order], number[order]
