"""What a tree of switches with thin uplinks costs an algorithm.

Below a switch of some level are s units, whose links together would carry s·w; upwards it has s·w/O. Of the
algorithms that run behind switches

- a *ring* (or chain) in the order of the ranks crosses an uplink once each way: O > s alone slows it down;
- *in-network* streams are combined in the switch, so they do the same;
- a *direct* all-to-all sends (n−s)/n of everything up: O·(n−s)/(n−1) times what it would take;
- of groups that lie between each other, each has fewer units below a switch, s, and as much the less of its uplinks;
- all others are priced as if every message crossed the thinnest uplinks, O times as long: an upper bound,
  which is what `oversubscription` of a tier does to all of them.
"""

from mc.config.axes import Axes
from mc.fabric import Tree


def tree_dilution(
    name: str, collective: str, tree: Tree, units: int, ranks_per_unit: int, axes: Axes | None = None
) -> float:
    """How many times longer bytes take than at full bandwidth.

    Args:
        name: of the algorithm.
        collective: what it carries out.
        tree: the shape of the tier.
        units: how many units of the tier take part.
        ranks_per_unit: ranks of one unit among which there is one stream; 1 where each has its own.
        axes: where the units are; side by side if left out. Groups between them send at the same time.
    """
    found = 1.0
    for below, factor in tree.crossings(units, axes):
        if name in ("ring", "bidirectional-ring", "in-network") or collective == "send-recv":
            found = max(found, factor / (below * ranks_per_unit))
        elif name == "direct":
            found = max(found, factor * (units - below) / (units - 1 / ranks_per_unit))
        else:
            found = max(found, factor)
    return found
