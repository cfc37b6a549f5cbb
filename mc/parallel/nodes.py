"""How a layer's tokens get to the nodes where their experts are."""

from typing import NamedTuple

from mc.config.axes import cut, split_at
from mc.parallel.group import Group
from mc.parallel.plan import Plan
from mc.transformer import Experts


class Nodes(NamedTuple):
    """Ranks that share a layer's experts, where they lie in several nodes.

    Attributes:
        between: ranks in the same place of each node, of which one gets a token for all of its node.
        inside: ranks of a node, to which it passes the token on.
    """

    between: Group
    inside: Group


def nodes_of(experts: Experts, plan: Plan) -> Nodes | None:
    """The nodes that tokens are sent to once each; None if each rank is sent its own.

    That is so with `all-to-all`, where the ranks are in one node or each in another, or lie irregularly.
    """
    axes = plan.groups.ep.axes
    if not plan.deduplicated or not axes:
        return None
    if plan.node is not None:
        found = split_at(axes, plan.node)
        inside, between = found if found is not None else (None, None)
    elif plan.ep % experts.groups:
        return None
    else:
        near = plan.ep // experts.groups
        inside, between = cut(axes, 1, near), cut(axes, near, experts.groups)
    if not inside or not between:
        return None
    return Nodes(Group("ep between nodes", between), Group("ep inside nodes", inside))
