"""Bytes on the wire: what a rank sends over each tier for a message.

A group with u₀, u₁, … units on the tiers that it spans, innermost first, has P_j = u₀·…·u_{j−1} ranks inside of a unit of the
tier j. A collective that sends as little as it can goes tier by tier, and each rank sends over the tier j

    all-gather, reduce-scatter, broadcast, reduce    B·(1/P_j − 1/P_{j+1})
    all-reduce                                       twice that, as a reduce-scatter and an all-gather
    all-to-all                                       B·(P_{j+1} − P_j)/n, the part of all n ranks that it meets there
    send-recv                                        B over the outermost tier, as the busiest of a chain's ranks

of a buffer of B bytes as nccl-tests counts it. Sums over tiers are the bounds of a flat group, (n−1)/n·B and
2(n−1)/n·B (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005). To switches that reduce each rank sends its part of an
all-reduce once, B/P_j, and its sum comes back: half as much (R. Graham et al., COM-HPC 2016). Where tiers have no switches,
bytes of an all-to-all pass several links: each passage counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mc.parallel.group import Group
from mc.parallel.message import Message
from mc.parallel.messages import messages
from mc.parallel.plan import Plan
from mc.transformer import Transformer


class Crossed(NamedTuple):
    """A tier that a group spans.

    Attributes:
        tier: its index in the cluster, 0 innermost.
        units: how many units of the tier below the group has in one of it.
        hops: links that a message between two of them passes, on average.
        reduces: whether its switches do.
    """

    tier: int
    units: int
    hops: float = 1.0
    reduces: bool = False


# The tiers that a group spans, innermost first.
Crosses = Callable[[Group], Sequence[Crossed]]


@dataclass(frozen=True)
class Traffic:
    """What one dimension of a plan sends over one tier in a step.

    Attributes:
        dimension: as in `Message`.
        tier: index of the tier.
        bytes: that the busiest rank sends.
        mean_bytes: that a rank sends on average; of what all stages of the pipeline send, still the busiest one's.
    """

    dimension: str
    tier: int
    bytes: float
    mean_bytes: float


def sent_by_tier(collective: str, size: float, crossed: Sequence[Crossed]) -> list[tuple[int, float]]:
    """Index of each tier, and bytes that a rank sends over it.

    Args:
        collective: its name.
        size: bytes of the whole buffer.
        crossed: the tiers that the group spans, innermost first.
    """
    if not crossed:
        return []
    if collective == "send-recv":
        return [(crossed[-1].tier, size)]
    ranks = 1
    for each in crossed:
        ranks *= each.units
    found, inside = [], 1
    for each in crossed:
        reached = inside * each.units
        if collective == "all-to-all":
            sent = size * (reached - inside) / ranks * each.hops
        elif collective == "all-reduce":
            sent = 2 * size * (1 / inside - 1 / reached)
            if each.reduces:
                sent = min(sent, size / inside)
        else:
            sent = size * (1 / inside - 1 / reached)
        found.append((each.tier, sent))
        inside = reached
    return found


def traffic(shape: Transformer, plan: Plan, crosses: Crosses) -> tuple[Traffic, ...]:
    """What a plan sends in a step, by dimension and tier, in the order of the messages."""
    busiest: dict[tuple[str, int], float] = {}
    mean: dict[tuple[str, int], float] = {}
    for message, tier, sent in _sent(shape, plan, crosses):
        key = (message.dimension, tier)
        busiest[key] = busiest.get(key, 0.0) + sent
        mean[key] = mean.get(key, 0.0) + sent * _taking_part(message, plan.pp)
    return tuple(Traffic(*key, sent, mean[key]) for key, sent in busiest.items())


def _sent(shape: Transformer, plan: Plan, crosses: Crosses) -> Iterator[tuple[Message, int, float]]:
    for message in messages(shape, plan):
        for tier, sent in sent_by_tier(message.collective, message.total, crosses(message.group)):
            yield message, tier, sent


def _taking_part(message: Message, stages: int) -> float:
    """Which part of the stages sends a message."""
    return {"all": 1.0, "ends": min(1.0, 2 / stages)}.get(message.stages, 1 / stages)
