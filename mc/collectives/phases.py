"""The cost of a plan on a cluster, tier by tier.

A flat algorithm does not know of tiers: some message of each round crosses the outermost one, and the round
waits for it. So its one phase pays the latency of the outermost spanned tier and the smallest bandwidth per
rank among the spanned tiers, and is booked on the outermost.

An in-network algorithm passes through the switches of every tier: a phase per tier with that tier's hops.
Above a unit of s ranks only one combined stream goes on, spread over the links of those ranks, so each
carries B/s. All tiers stream at once, so the slowest of them determines the bandwidth time and is booked for
all of it.

That is for links that are lines. Where links have protocols, `protocols.py` has the costs. Where a shape dilutes
the bandwidth or a message passes several links, and where some ranks have slower links than others, the algorithm
meets tiers with the links of the slowest of its ranks (`seen.py`). Where units of a tier differ, the kind of unit
that takes longest decides.
"""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.cost import DEFAULT_RADIX, Cost, Machine
from mc.collectives.in_network import IN_NETWORK, through_buffers
from mc.collectives.protocols import costs_under
from mc.collectives.seen import as_seen
from mc.collectives.stages import Stage
from mc.fabric import Cluster, Tier, smallest_bandwidth


class Phase(eqx.Module):
    """What a collective spends on one tier.

    Attributes:
        tier_index: of the tier, 0 innermost.
        tier_name: of the tier.
        collective: what runs there.
        algorithm: how.
        units: how many peers exchange with each other.
        rounds: messages (or switch hops) one after the other.
        latency_time: seconds of latency.
        bandwidth_time: seconds that bytes take.
        reduction_time: seconds of combining.
        bytes_per_rank: what a rank sends, the mean over the ranks.
    """

    tier_index: int = eqx.field(static=True)
    tier_name: str = eqx.field(static=True)
    collective: str = eqx.field(static=True)
    algorithm: str = eqx.field(static=True)
    units: int = eqx.field(static=True)
    cost: Cost

    @property
    def rounds(self) -> Float[Array, ""]:
        """Messages (or switch hops) one after the other."""
        return self.cost.rounds

    @property
    def latency_time(self) -> Float[Array, ""]:
        """Seconds of latency."""
        return self.cost.latency_time

    @property
    def bandwidth_time(self) -> Float[Array, ""]:
        """Seconds that bytes take on links."""
        return self.cost.bandwidth_time

    @property
    def reduction_time(self) -> Float[Array, ""]:
        """Seconds of combining."""
        return self.cost.reduction_time

    @property
    def bytes_per_rank(self) -> Float[Array, ""]:
        """What a rank sends, the mean over the ranks."""
        return self.cost.bytes_per_rank


def machine_of(cluster: Cluster, tiers: tuple[Tier, ...]) -> Machine:
    """What messages meet that cross all of `tiers`: the outermost latency and the smallest bandwidth."""
    outermost = tiers[-1]
    return Machine(
        latency=outermost.link.latency,
        bandwidth=smallest_bandwidth(tiers),
        reduction_time_per_byte=cluster.reduction_time_per_byte,
        hop_latency=outermost.hop_latency,
        radix=outermost.reduction_radix or DEFAULT_RADIX,
    )


def phases_of(cluster: Cluster, stages: Sequence[Stage], size: ArrayLike) -> tuple[Phase, ...]:
    """What stages cost on a cluster; traceable and differentiable in the cluster's numbers and in `size`.

    Args:
        cluster: for which the stages were chosen.
        stages: from `mc.collectives.stages`.
        size: bytes; of any shape, which all times then have.

    Returns:
        Phases whose times add up to the collective's.
    """
    return tuple(phase for stage in stages for phase in _of_stage(cluster, stage, size))


def _of_stage(cluster: Cluster, stage: Stage, size: ArrayLike) -> list[Phase]:
    if stage.kinds:
        kinds = [replace(kind, protocol=stage.protocol) for kind in stage.kinds]
        (first, *_), *_ = each = [_of_stage(cluster, kind, size) for kind in kinds]
        cost = _slowest(kinds, [phase.cost for (phase,) in each])
        return [_phase(cluster, stage, first.tier_index, stage.ranks, cost)]
    part = jnp.asarray(size, jnp.result_type(float)) * stage.share
    cluster = as_seen(cluster, stage)
    if stage.protocol is not None:
        return [
            _phase(cluster, stage, tier, units, cost)
            for tier, units, cost in costs_under(cluster, stage, part)
        ]
    if stage.algorithm.name == IN_NETWORK:
        return _through_switches(cluster, stage, part)
    tiers = tuple(cluster.tiers[index] for index in stage.tiers)
    cost = stage.algorithm.cost(stage.ranks, part, machine_of(cluster, tiers))
    return [_phase(cluster, stage, stage.tiers[-1], stage.ranks, cost)]


def _slowest(kinds: Sequence[Stage], costs: Sequence[Cost]) -> Cost:
    """The cost of the kind of units that takes longest; of bytes, the mean over the ranks."""
    slowest = jnp.argmax(jnp.stack([cost.time for cost in costs]), axis=0)

    def of_slowest(*parts: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.take_along_axis(jnp.stack(jnp.broadcast_arrays(slowest, *parts)[1:]), slowest[None], 0)[0]

    chosen = jax.tree.map(of_slowest, *costs)
    weights = [kind.count * kind.ranks for kind in kinds]
    sent = sum(
        weight * kind.filled * cost.bytes_per_rank
        for weight, kind, cost in zip(weights, kinds, costs, strict=True)
    ) / sum(weights)
    return eqx.tree_at(lambda cost: cost.bytes_per_rank, chosen, sent)


def _through_switches(cluster: Cluster, stage: Stage, size: Float[Array, ""]) -> list[Phase]:
    tiers = [cluster.tiers[index] for index in stage.tiers]
    costs = [
        stage.algorithm.cost(units, size / stripes, machine_of(cluster, (tier,)))
        for tier, units, stripes in zip(tiers, stage.units, stage.stripes, strict=True)
    ]
    round_trip = sum((cost.latency_time for cost in costs), jnp.zeros((), size.dtype))
    times = jnp.stack(
        [
            through_buffers(cost.bandwidth_time, cost.bandwidth_time * tier.link.bandwidth, round_trip, tier)
            for cost, tier in zip(costs, tiers, strict=True)
        ]
    )
    slowest = jnp.argmax(times, axis=0)
    costs = [
        eqx.tree_at(lambda c: c.bandwidth_time, cost, jnp.where(slowest == place, times[place], 0.0))
        for place, cost in enumerate(costs)
    ]
    return [
        _phase(cluster, stage, index, units, cost)
        for index, units, cost in zip(stage.tiers, stage.units, costs, strict=True)
    ]


def _phase(cluster: Cluster, stage: Stage, tier: int, units: int, cost: Cost) -> Phase:
    algorithm = stage.algorithm
    return Phase(tier, cluster.tiers[tier].name, algorithm.collective, algorithm.name, units, cost)
