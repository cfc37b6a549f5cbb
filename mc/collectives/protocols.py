"""What an algorithm costs under a protocol, counted as NCCL's tuner counts (src/graph/tuning.cc, 2.30.7).

A collective pays its protocol's base latency once, a latency for each hop, and its bytes at the slowest tier
in the way. How many hops it makes on which tier:

- *ring*: it goes once round, so a ring of n ranks in N nodes crosses N − 1 links between nodes on its n − 1
  steps; an all-reduce goes round twice. Its channels use all links of a node, so between nodes it has their
  bandwidth together.
- *tree*: a chain inside the node, a binary tree of nodes: 2(n/N − 1) hops inside and 2⌈log₂ N⌉ outside. Half
  of the bandwidth, times a measured factor for the size.
- *in-network*: the switches' hops of each tier; base latency and efficiency are the family's own.

Small messages use a part of the channels only. NCCL's tuner leaves that out, though NCCL does so.

NCCL has no other algorithms. Those here that it does not have take the numbers of the nearest family (trees:
binomial and k-ary; rings: all others, whose messages go to a neighbour or a partner) and the costs of a flat
algorithm: each round pays the outermost hop, each rank has its own links and all channels.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.cost import DEFAULT_RADIX, Cost
from mc.collectives.in_network import IN_NETWORK, through_buffers
from mc.collectives.integers import ceil_log, to_integer
from mc.collectives.stages import Stage
from mc.config.protocol import Family
from mc.fabric import Cluster, Tier
from mc.fabric.protocol_links import bandwidth_per_rank, base_latency, hop_latencies, terms_of

RING, TREE = "ring", "tree"
_FAMILIES: Mapping[str, Family] = MappingProxyType(
    {TREE: "tree", "binomial": "tree", "k-ary": "tree", IN_NETWORK: "in-network"}
)
_Tiers = tuple[Tier, ...]
_Number = Float[Array, ""]


def family(algorithm: str) -> Family:
    """The family of protocol numbers that an algorithm takes: its own, or the nearest that NCCL has."""
    return _FAMILIES.get(algorithm, "ring")


def costs_under(cluster: Cluster, stage: Stage, size: _Number) -> list[tuple[int, int, Cost]]:
    """What a stage costs under its protocol.

    Args:
        cluster: the stage's.
        stage: with a protocol.
        size: bytes of the stage's part of the message.

    Returns:
        Per phase: index of the tier it is booked on, how many peers exchange there, and the cost.
    """
    tiers = tuple(cluster.tiers[index] for index in stage.tiers)
    if stage.ranks == 1:
        zero = jnp.zeros((), size.dtype)
        return [(stage.tiers[-1], 1, Cost(zero, zero, zero, zero, zero))]
    if stage.algorithm.name == IN_NETWORK:
        found = _through_switches(cluster, stage, tiers, size)
    else:
        cost = (_stream if _is_stream(stage) else _pairs)(cluster, stage, tiers, size)
        found = [(stage.tiers[-1], stage.ranks, cost)]
    return _within_sizes(found, stage, tiers, size)


def _within_sizes(
    found: list[tuple[int, int, Cost]], stage: Stage, tiers: _Tiers, size: _Number
) -> list[tuple[int, int, Cost]]:
    """The costs of sizes that the protocol can be used for; of others it never ends, and another one is chosen."""
    known = [terms_of(tier, stage.protocol, family(stage.algorithm.name)) for tier in tiers]
    limited = [each[0] for each in known if each is not None and each[0].is_limited]
    if not limited:
        return found
    (tier, units, cost), *rest = found
    waits = sum((each.waits(size) for each in limited), jnp.zeros((), size.dtype))
    return [(tier, units, replace(cost, latency_time=cost.latency_time + waits)), *rest]


def _is_stream(stage: Stage) -> bool:
    """Whether NCCL runs it on channels over all links of a node."""
    return stage.algorithm.name in (RING, TREE)


def _counts(stage: Stage, tiers: _Tiers, size: _Number):
    radix = to_integer(tiers[-1].reduction_radix or DEFAULT_RADIX)
    return stage.algorithm.counts(jnp.asarray(stage.ranks, size.dtype), radix)


def _pairs(cluster: Cluster, stage: Stage, tiers: _Tiers, size: _Number) -> Cost:
    """Rounds of messages among ranks that each have their own links."""
    of, counts = family(stage.algorithm.name), _counts(stage, tiers, size)
    rounds, hops = (jnp.asarray(each, size.dtype) for each in (counts.rounds, counts.hops))
    latency = rounds * hop_latencies(tiers, stage.protocol, of)[-1] + hops * tiers[-1].hop_latency
    bandwidths = [
        bandwidth_per_rank(tier, stage.protocol, of, width)
        for tier, width in zip(tiers, stage.width, strict=True)
    ]
    return Cost(
        rounds=rounds + hops,
        bytes_per_rank=jnp.asarray(counts.sent, size.dtype) * size,
        latency_time=base_latency(tiers, stage.protocol, of) + latency,
        bandwidth_time=jnp.asarray(counts.carried, size.dtype) * size / jnp.min(jnp.stack(bandwidths)),
        reduction_time=_combining(cluster, counts.combined, size),
    )


def _stream(cluster: Cluster, stage: Stage, tiers: _Tiers, size: _Number) -> Cost:
    """A ring or a tree: one stream that passes through all tiers."""
    of, counts = family(stage.algorithm.name), _counts(stage, tiers, size)
    hops = _hops(stage, tiers, counts.rounds)
    latency = base_latency(tiers, stage.protocol, of)
    for count, each in zip(hops, hop_latencies(tiers, stage.protocol, of), strict=True):
        latency = latency + jnp.asarray(count, size.dtype) * each
    carried = [counts.carried] * len(tiers)
    if stage.algorithm.name == TREE:
        # The busiest unit sends all up and all down again. Of two units neither does: each is the root of one
        # of the trees, for a half. (NCCL does not count the network on two nodes.)
        carried = [min(units / 2, 2.0) for units in stage.units_in_all]
    times = [
        part * size / (_stream_bandwidth(tier, stage, of, place, size) * _correction(tier, stage, of, size))
        for place, (tier, part) in enumerate(zip(tiers, carried, strict=True))
    ]
    return Cost(
        rounds=sum((jnp.asarray(each, size.dtype) for each in hops), jnp.zeros((), size.dtype)),
        bytes_per_rank=jnp.asarray(counts.sent, size.dtype) * size,
        latency_time=latency * _plateau(tiers, stage, of, size),
        bandwidth_time=jnp.max(jnp.stack(times), axis=0),
        reduction_time=_combining(cluster, counts.combined, size),
    )


def _hops(stage: Stage, tiers: _Tiers, rounds: ArrayLike) -> list[_Number | float]:
    """How many hops a ring or a tree makes on each tier, innermost first.

    What crosses a tier further out is no hop of this one, so counts are differences.
    """
    beyond = (*stage.units_in_all[1:], 1)
    if stage.algorithm.name == RING:
        # Once round the ring is n − 1 hops, of `rounds` in all.
        return [
            jnp.asarray(rounds) * (inside - outside) / (stage.ranks - 1)
            for inside, outside in zip(stage.units_in_all, beyond, strict=True)
        ]
    found = []
    for tier, units, inside, outside in zip(tiers, stage.units, stage.units_in_all, beyond, strict=True):
        known = terms_of(tier, stage.protocol, "tree")
        chain = known is not None and known[1].chain
        found.append(2.0 * (units - 1 if chain else ceil_log(inside, 2) - ceil_log(outside, 2)))
    return found


def _stream_bandwidth(tier: Tier, stage: Stage, of: Family, place: int, size: _Number) -> _Number:
    """Of the links of a unit together, as far as the message fills their channels."""
    links = stage.stripes[place]
    known = terms_of(tier, stage.protocol, of)
    part = 1.0 if known is None else known[1].part_of_channels(size, stage.ranks, known[0].channels * links)
    return bandwidth_per_rank(tier, stage.protocol, of, stage.width[place], part) * links


def _correction(tier: Tier, stage: Stage, of: Family, size: _Number) -> _Number | float:
    """The measured factor on the bandwidth for this size."""
    known = terms_of(tier, stage.protocol, of)
    return 1.0 if known is None or known[1].correction is None else known[1].correction.at(size)


def _plateau(tiers: _Tiers, stage: Stage, of: Family, size: _Number) -> _Number:
    """The factor on the latency of an all-reduce that is no longer tiny; the largest of the tiers'."""
    found = jnp.ones((), size.dtype)
    for tier, links in zip(tiers, stage.stripes, strict=True):
        known = terms_of(tier, stage.protocol, of)
        if known is None or known[1].plateau is None or stage.algorithm.collective != "all-reduce":
            continue
        share = size / (known[0].channels * links * stage.ranks)
        reached = share >= known[1].plateau.first
        found = jnp.maximum(found, jnp.where(reached, known[1].plateau.factor, 1.0))
    return found


def _through_switches(
    cluster: Cluster, stage: Stage, tiers: _Tiers, size: _Number
) -> list[tuple[int, int, Cost]]:
    """The switches of every tier; all tiers stream at once, so the slowest is booked for all the bytes."""
    counts = [
        stage.algorithm.counts(
            jnp.asarray(units, size.dtype), to_integer(tier.reduction_radix or DEFAULT_RADIX)
        )
        for tier, units in zip(tiers, stage.units, strict=True)
    ]
    latencies = hop_latencies(tiers, stage.protocol, "in-network")
    round_trip = jnp.zeros((), size.dtype)
    for each, latency in zip(counts, latencies, strict=True):
        round_trip = round_trip + jnp.asarray(each.hops, size.dtype) * latency
    streams = [
        jnp.asarray(each.carried, size.dtype) * size / stripes
        for each, stripes in zip(counts, stage.stripes, strict=True)
    ]
    times = jnp.stack(
        [
            through_buffers(
                carried / bandwidth_per_rank(tier, stage.protocol, "in-network", width),
                carried,
                round_trip,
                tier,
            )
            for carried, tier, width in zip(streams, tiers, stage.width, strict=True)
        ]
    )
    slowest = jnp.argmax(times, axis=0)
    found = []
    for place, each in enumerate(counts):
        hops = jnp.asarray(each.hops, size.dtype)
        latency = hops * latencies[place]
        if place == 0:
            latency = latency + base_latency(tiers, stage.protocol, "in-network")
        cost = Cost(
            rounds=hops,
            bytes_per_rank=jnp.asarray(each.sent, size.dtype) * size / stage.stripes[place],
            latency_time=latency,
            bandwidth_time=jnp.where(slowest == place, times[place], 0.0),
            reduction_time=_combining(cluster, each.combined, size),
        )
        found.append((stage.tiers[place], stage.units[place], cost))
    return found


def _combining(cluster: Cluster, combined: ArrayLike, size: _Number) -> _Number:
    return jnp.asarray(combined, size.dtype) * size * cluster.reduction_time_per_byte
