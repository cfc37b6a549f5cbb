"""Which tiers a group of ranks spans.

A group is consecutive ranks from the start of a unit, so it fills inner tiers before it takes another unit of
an outer one. (A group whose ranks are a stride apart would skip the tiers inside the stride; it would be one
more argument here and nothing elsewhere.)
"""

import equinox as eqx

from mc.fabric.cluster import Cluster, FabricError, Tier


class Extent(eqx.Module):
    """The part of a tier that a group spans.

    Attributes:
        tier: the tier.
        index: its place in the cluster, 0 innermost.
        units: how many units of the tier below the group reaches, at least 2.
        ranks_per_unit: how many ranks a full unit holds.
        even: whether every such unit is filled with ranks of the group.
    """

    tier: Tier
    index: int = eqx.field(static=True)
    units: int = eqx.field(static=True)
    ranks_per_unit: int = eqx.field(static=True)
    even: bool = eqx.field(static=True)


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
    extents: list[Extent] = []
    ranks_per_unit = 1
    for index, tier in enumerate(cluster.tiers):
        units = min(-(-ranks // ranks_per_unit), tier.fan_out)
        if units > 1:
            extents.append(Extent(tier, index, units, ranks_per_unit, ranks % ranks_per_unit == 0))
        ranks_per_unit *= tier.fan_out
    return tuple(extents)


def is_even(extents: tuple[Extent, ...]) -> bool:
    """Whether the group is the product of its extents, so that every unit of a tier does the same."""
    return all(extent.even for extent in extents)
