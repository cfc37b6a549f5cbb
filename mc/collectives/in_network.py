"""Reduction in the switches: every rank sends its buffer up once, and the result comes down once.

Switches that combine k inputs form a tree of depth ⌈log_k n⌉; a message pays the switch latency once per
level. Data stream through, so the bytes are paid once, and up and down at the same time. (R. Graham et al.,
"Scalable Hierarchical Aggregation Protocol (SHArP)", COM-HPC 2016.) Ranks combine nothing.

A switch holds what it has taken in until the result has come back down through it. If it can hold C bytes of a
stream, C go through per round trip, so a stream is no faster than C over the latency of the whole way
(`through_buffers`).

On a cluster such an algorithm goes through all tiers that the group spans; see `phases.py`.
"""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log
from mc.fabric import Tier

IN_NETWORK = "in-network"


def through_buffers(
    transfer: Float[Array, ""], carried: Float[Array, ""], round_trip: Float[Array, ""], tier: Tier
) -> Float[Array, ""]:
    """The transfer time of a stream through a tier's switches, given what they can hold.

    Args:
        transfer: seconds that its bytes take on the links.
        carried: bytes of one stream.
        round_trip: seconds up to the top and down again without any bytes.
        tier: whose switches.
    """
    if tier.reduction_buffer is None:
        return transfer
    return jnp.maximum(transfer, carried * round_trip / tier.reduction_buffer)


class InNetworkAllReduce(AbstractAlgorithm):
    """Up and down the switches."""

    name: ClassVar[str] = IN_NETWORK
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2·⌈log_k n⌉ hops; every rank sends B and receives B, at once."""
        return Counts(rounds=0.0, hops=2 * ceil_log(ranks, radix), sent=1.0, carried=1.0)


class InNetworkReduce(AbstractAlgorithm):
    """Up the switches."""

    name: ClassVar[str] = IN_NETWORK
    collective: ClassVar[str] = "reduce"

    def counts(self, ranks, radix):
        """⌈log_k n⌉ hops; every rank sends B."""
        return Counts(rounds=0.0, hops=ceil_log(ranks, radix), sent=1.0, carried=1.0)


class InNetworkBroadcast(AbstractAlgorithm):
    """Down the switches."""

    name: ClassVar[str] = IN_NETWORK
    collective: ClassVar[str] = "broadcast"

    def counts(self, ranks, radix):
        """⌈log_k n⌉ hops; the root alone sends B, and the switches copy it."""
        return Counts(rounds=0.0, hops=ceil_log(ranks, radix), sent=1 / ranks, carried=1.0)


class InNetworkBarrier(AbstractAlgorithm):
    """Up and down the switches with no data."""

    name: ClassVar[str] = IN_NETWORK
    collective: ClassVar[str] = "barrier"

    def counts(self, ranks, radix):
        """2·⌈log_k n⌉ hops."""
        return Counts(rounds=0.0, hops=2 * ceil_log(ranks, radix), sent=0.0, carried=0.0)
