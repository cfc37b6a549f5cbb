"""The cluster as a stage meets it: with the links of the slowest of its ranks, as its shape lets them be used.

A rank whose links are slower holds up all that exchange with it, so a stage pays the largest latency and the
smallest bandwidth among its ranks. Only the tiers of the stage are changed; structure stays as it is.
"""

import math
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.collectives.stages import Stage
from mc.fabric import Cluster, Combination, Protocol, Tier


def as_seen(cluster: Cluster, stage: Stage) -> Cluster:
    """The cluster with the links that the stage's algorithm can count on; itself where nothing differs."""
    tiers = list(cluster.tiers)
    for place, index in enumerate(stage.tiers):
        dilution = stage.dilutions[place] if stage.dilutions else 1.0
        hops = stage.hops[place] if stage.hops else 1
        links = stage.links[place] if stage.links else ((),)
        if not math.isclose(dilution, 1.0) or hops > 1 or links != ((),):
            tiers[index] = _seen(tiers[index], dilution, hops, links)
    if all(one is other for one, other in zip(tiers, cluster.tiers, strict=True)):
        return cluster
    return eqx.tree_at(lambda each: each.tiers, cluster, tuple(tiers))


def _seen(tier: Tier, dilution: float, hops: int, links: tuple[Combination, ...]) -> Tier:
    latency, bandwidth = tier.link.latency, tier.link.bandwidth
    if hops > 1:
        latency = latency + (hops - 1) * tier.hop_latency
    bandwidth = bandwidth / dilution
    found, hop_latency = tier, tier.hop_latency
    if links != ((),):
        slow, wide = _worst(tier, links)
        latency, hop_latency, bandwidth = latency * slow, hop_latency * slow, bandwidth * wide
        protocols = tuple(_slowed(each, slow) for each in tier.protocols)
        found = eqx.tree_at(lambda each: each.protocols, found, protocols)
    return eqx.tree_at(
        lambda each: (each.link.latency, each.link.bandwidth, each.hop_latency),
        found,
        (latency, bandwidth, hop_latency),
    )


def _worst(tier: Tier, links: tuple[Combination, ...]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest factor on latency and the smallest on bandwidth, each over all combinations."""
    one = jnp.ones((), tier.link.latency.dtype)

    def product(combination: Combination, name: str) -> Float[Array, ""]:
        return reduce(jnp.multiply, (getattr(tier.variations[each], name) for each in combination), one)

    slow = [product(each, "latency_factor") for each in links]
    wide = [product(each, "bandwidth_factor") for each in links]
    return reduce(jnp.maximum, slow), reduce(jnp.minimum, wide)


def _slowed(protocol: Protocol, factor: Float[Array, ""]) -> Protocol:
    """A protocol whose hops take longer; what it pays once stays."""

    def hops(each: Protocol) -> list[Array]:
        families = (each.ring, each.tree, each.in_network)
        return [
            latency
            for terms in families
            if terms is not None
            for latency in (terms.hop_latency, terms.inner_hop_latency)
            if latency is not None
        ]

    return eqx.tree_at(hops, protocol, [latency * factor for latency in hops(protocol)])
