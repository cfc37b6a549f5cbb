"""Messages of tokens to experts and back: `ep` and `etp`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from mc.config.names import FORMAT_BYTES
from mc.parallel.group import Group
from mc.parallel.message import Behind, Message, Where
from mc.parallel.nodes import nodes_of
from mc.parallel.passes import Dimension, Passes, repeats
from mc.parallel.plan import Plan
from mc.parallel.routing_choice import Choice, destinations
from mc.transformer import Experts, Transformer


def expert_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Tokens to experts and back, with their gradients."""
    experts, groups = shape.experts, plan.groups
    if experts is None:
        return
    behind: Behind | None = "micro-batch" if plan.overlap.experts else None
    tokens = plan.split.tokens / plan.tp * shape.hidden
    sent, returned = (FORMAT_BYTES[each] for each in (plan.formats.dispatch, plan.formats.combine))
    again = repeats(plan, "experts")
    for route in _routes(experts, plan):
        dimension = Dimension("ep", route.group, passes)
        out, back = (tokens * route.copies * width for width in (sent, returned))
        legs: list[tuple[str, float, Where]] = [
            ("dispatch", out, "forward"),
            ("combine", back, "forward"),
            ("gradients to experts", out, "backward"),
            ("gradients back", back, "backward"),
        ]
        for what, size, where in legs:
            what = f"{what}{route.name}"
            yield route.taken(dimension.of_segment(what, "all-to-all", size, "experts", where, 1, behind))
        if again:
            for what, size, _ in legs[:2]:
                what = f"{what} again{route.name}"
                found = dimension.of_segment(
                    what, "all-to-all", size, "experts", "backward", 1, behind, again=True
                )
                yield route.taken(found)
    if plan.etp > 1:
        dimension = Dimension("etp", groups.etp, passes)
        pooled = tokens * experts.top_k * plan.etp
        out, back = pooled * sent, pooled * returned
        yield dimension.of_segment("tokens", "all-gather", out, "experts", "forward", 1, behind)
        yield dimension.of_segment("results", "reduce-scatter", back, "experts", "forward", 1, behind)
        if again:
            what = "tokens again"
            yield dimension.of_segment(what, "all-gather", out, "experts", "backward", 1, behind, again=True)
            what = "results again"
            yield dimension.of_segment(
                what, "reduce-scatter", back, "experts", "backward", 1, behind, again=True
            )
        yield dimension.of_segment(
            "gradients of results", "all-gather", out, "experts", "backward", 1, behind
        )
        yield dimension.of_segment(
            "gradients of tokens", "reduce-scatter", back, "experts", "backward", 1, behind
        )


class _Route(NamedTuple):
    """A way that tokens go to experts: among whom, in how many copies each."""

    name: str
    group: Group
    copies: float
    to_nodes: bool = False
    beside: bool = False

    def taken(self, message: Message) -> Message:
        """A message that goes this way."""
        return replace(message, to_nodes=self.to_nodes, beside=self.beside)


def _routes(experts: Experts, plan: Plan) -> list[_Route]:
    if not plan.deduplicated:
        return [_Route("", plan.groups.ep, experts.top_k)]
    choice = Choice(experts.count, experts.top_k, experts.groups, experts.group_limit)
    nodes, to_ranks = nodes_of(experts, plan), destinations(choice, plan.ep)
    if nodes is None:
        return [_Route("", plan.groups.ep, to_ranks)]
    to_nodes = destinations(choice, nodes.between.size)
    return [
        _Route(" between nodes", nodes.between, to_nodes, to_nodes=True),
        _Route(" inside nodes", nodes.inside, to_ranks, beside=True),
    ]
