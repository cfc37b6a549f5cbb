"""Which tiers a step's messages cross.

A message belongs to the outermost tier that its group spans: there its bytes take longest, and there it meets what
disturbs links. Of a pass it matters how many messages ranks wait for one after the other, tier by tier, and which part
of what they wait for in each dimension is bytes on the tier.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mc.parallel import Content, Group, Message, Plan, contents, messages
from mc.training.pass_times import FORWARD, INPUT, PASSES, PassTime
from mc.training.prices import AbstractPrices
from mc.transformer import Transformer

Tier = Callable[[Group], int]


@dataclass
class Crossing:
    """The messages of a pass through a part of the model.

    Attributes:
        waited: by tier, how many messages ranks wait for one after the other.
        moved: by dimension and tier, seconds in which all bytes move.
    """

    waited: dict[int, float] = field(default_factory=dict)
    moved: dict[str, dict[int, float]] = field(default_factory=dict)

    def bytes_on(self, one: PassTime, tier: int, dimensions: Callable[[str], bool]) -> float:
        """Of what a pass waits for, the seconds in which bytes move on a tier, in some dimensions.

        All but latency, in proportion to the seconds in which bytes of each dimension move, or are waited for where
        those are fewer since they move behind computing.
        """
        every = asked = 0.0
        for name, seconds in one.waiting.items():
            by_tier = self.moved.get(name, {})
            moved = sum(by_tier.values())
            shown = min(float(seconds), moved)
            every += shown
            if moved and dimensions(name):
                asked += shown * by_tier.get(tier, 0.0) / moved
        whole = max(float(sum(one.waiting.values()) - one.latency), 0.0)
        return whole * asked / every if every else 0.0


Crossings = Mapping[str, Crossing]


def crossings(plan: Plan, shape: Transformer, prices: AbstractPrices) -> tuple[tuple[Crossings, ...], ...]:
    """The messages of each pass through each part of the model, [stages][chunks], by the names of `PASSES`."""
    known: dict[Content, Crossings] = {}
    found = []
    inside = [each for each in messages(shape, plan) if each.segment is not None]
    for stage in contents(shape, plan):
        for content in stage:
            if content not in known:
                known[content] = _of_part(content, inside, prices)
        found.append(tuple(known[content] for content in stage))
    return tuple(found)


def _of_part(content: Content, inside: list[Message], prices: AbstractPrices) -> Crossings:
    found = {name: Crossing() for name in PASSES}
    passed = {
        "attention": content.dense + content.moe,
        "mlp": content.dense,
        "experts": content.moe,
        "embedding": int(content.is_first),
        "head": int(content.is_last),
    }
    again = {
        "attention": content.dense_again + content.moe_again,
        "mlp": content.dense_again,
        "experts": content.moe_again,
    }
    for message in inside:
        assert message.segment is not None
        times = (again if message.again else passed)[message.segment] * message.each
        if not times:
            continue
        tier = prices.tier(message.group)
        into = found[FORWARD if message.where == "forward" else INPUT]
        if message.behind is None and not message.beside:
            into.waited[tier] = into.waited.get(tier, 0.0) + times
        moved = into.moved.setdefault(message.dimension, {})
        price = prices.price(message.collective, message.group, message.bytes)
        moved[tier] = moved.get(tier, 0.0) + times * float(price.bandwidth)
    return found
