"""What messages meet on tiers under a protocol: latencies per hop, bandwidths, and what is paid once.

A tier without a table stays the line that its link is, under every protocol. A cap holds for all that leaves a
unit of the tier below, so the ranks of the unit share it.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.config.protocol import AUTO, NONE, Family
from mc.document import did_you_mean
from mc.fabric.cluster import Cluster, FabricError, Tier
from mc.fabric.protocol import Protocol, Terms

IN_NETWORK: Family = "in-network"


def protocols(tiers: tuple[Tier, ...], family: Family) -> tuple[str | None, ...]:
    """The protocols that a family of algorithms can use across tiers; `None` alone if no tier has a table.

    A protocol must be in the table of every tier that has one, and serve the family there.
    """
    tables = [tier for tier in tiers if tier.protocols]
    if not tables:
        return (None,)
    named = [{each.name for each in tier.protocols if each.of(family) is not None} for tier in tables]
    return tuple(each.name for each in tables[0].protocols if all(each.name in names for names in named))


def check_protocol(cluster: Cluster, tiers: tuple[Tier, ...], name: str) -> None:
    """Objects to a protocol that is not in the way; `tiers` are those of the group.

    Raises:
        FabricError: no link has it, or not all that should.
    """
    known = dict.fromkeys(each.name for tier in cluster.tiers for each in tier.protocols)
    if not known:
        raise FabricError(
            f"protocol `{name}`: expected `{AUTO}` or `{NONE}`, since no link of {cluster.name} has protocols"
        )
    if name not in known:
        raise FabricError(f"unknown protocol `{name}`; {did_you_mean(name, (*known, AUTO, NONE))}")
    without = [t.name for t in tiers if t.protocols and name not in {each.name for each in t.protocols}]
    if without:
        listed = ", ".join(f"`{each}`" for each in without)
        raise FabricError(f"protocol `{name}`: expected one that every tier has; {listed} does not")


def terms_of(tier: Tier, protocol: str | None, family: Family) -> tuple[Protocol, Terms] | None:
    """A protocol and what a family pays under it; None where the tier has no table, or none is asked for.

    Raises:
        FabricError: the table has no such protocol, or it does not serve the family.
    """
    if protocol is None or not tier.protocols:
        return None
    for each in tier.protocols:
        if each.name == protocol:
            terms = each.of(family)
            if terms is not None:
                return each, terms
            raise FabricError(f"protocol `{protocol}` of `{tier.name}` does not serve {family} algorithms")
    raise FabricError(f"protocol `{protocol}`: expected one that every tier has; `{tier.name}` does not")


def hop_latencies(tiers: tuple[Tier, ...], protocol: str | None, family: Family) -> list[Float[Array, ""]]:
    """Per hop on each tier, innermost first, with what a tier further out makes hops inside take at least."""
    found: list[Float[Array, ""]] = []
    least: Float[Array, ""] = jnp.zeros(())
    for tier in reversed(tiers):
        known = terms_of(tier, protocol, family)
        latency = tier.hop_latency if family == IN_NETWORK else tier.link.latency
        if known is not None and known[1].hop_latency is not None:
            latency = known[1].hop_latency
        found.append(jnp.maximum(latency, least))
        if known is not None:
            least = jnp.maximum(least, known[1].inner_hop_latency)
    return found[::-1]


def base_latency(tiers: tuple[Tier, ...], protocol: str | None, family: Family) -> Float[Array, ""]:
    """Once per collective, however many tiers: the largest."""
    found = jnp.zeros(())
    for tier in tiers:
        known = terms_of(tier, protocol, family)
        if known is not None:
            found = jnp.maximum(found, known[1].base_latency)
    return found


def bandwidth_per_rank(
    tier: Tier, protocol: str | None, family: Family, width: int, part: ArrayLike = 1.0
) -> Float[Array, ""]:
    """Bytes/s of one rank at a tier.

    Args:
        tier: the tier.
        protocol: a name, or None.
        family: of the algorithm.
        width: how many ranks share the limits of their unit.
        part: of the channels in use.
    """
    known = terms_of(tier, protocol, family)
    if known is None:
        return tier.link.bandwidth
    each, terms = known
    return terms.bandwidth(tier.link.bandwidth * width, each.channels * width) / width * part
