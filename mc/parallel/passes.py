"""How often a micro-batch passes what on the way through a step, and the messages that each pass sends."""

from collections.abc import Callable
from typing import NamedTuple

from mc.config.recompute import LAYER, parts_of
from mc.parallel.group import Group
from mc.parallel.message import Behind, Message, Stages, Where
from mc.parallel.plan import Plan
from mc.parallel.state import Content, contents, distinct_stages
from mc.transformer import Transformer


class Passes(NamedTuple):
    """How often, in a step, a micro-batch passes a segment on the busiest rank, or goes on to the next stage.

    Those with `again` are of layers in which something is computed again.
    """

    attention: int
    mlp: int
    experts: int
    attention_again: int
    mlp_again: int
    experts_again: int
    ends: int
    sent: int

    def of(self, segment: str, *, again: bool = False) -> int:
        """How often a segment is passed."""
        return getattr(self, f"{segment}_again" if again else segment, self.ends)


def passes_of(shape: Transformer, plan: Plan) -> Passes:
    """Those of a plan."""
    everything = contents(shape, plan)
    stages = [everything[stage] for stage in distinct_stages(shape, plan)]

    def most(number: Callable[[Content], int]) -> int:
        return plan.passes * max(sum(number(each) for each in stage) for stage in stages)

    return Passes(
        attention=most(lambda each: each.dense + each.moe),
        mlp=most(lambda each: each.dense),
        experts=most(lambda each: each.moe),
        attention_again=most(lambda each: each.dense_again + each.moe_again),
        mlp_again=most(lambda each: each.dense_again),
        experts_again=most(lambda each: each.moe_again),
        ends=plan.passes,
        sent=most(lambda each: not each.is_last),
    )


def repeats(plan: Plan, *parts: str) -> bool:
    """Whether one of some parts of a layer is computed again, or all of it."""
    return bool(parts_of(plan.recompute) & {LAYER, *parts})


class Dimension(NamedTuple):
    """What messages of one dimension have in common.

    Attributes:
        name: of the dimension.
        group: among whom.
        passes: how often segments are passed.
    """

    name: str
    group: Group
    passes: Passes

    def of_segment(
        self,
        what: str,
        collective: str,
        size: float,
        segment: str,
        where: Where,
        each: float = 1,
        behind: Behind | None = None,
        stages: Stages = "all",
        *,
        again: bool = False,
    ) -> Message:
        """A message of a segment."""
        return Message(
            self.name,
            what,
            collective,
            size,
            self.group,
            each,
            each * self.passes.of(segment, again=again),
            where,
            segment,
            "layer",
            behind,
            stages,
            again,
        )
