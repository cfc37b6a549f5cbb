"""Reduction in the switches: every rank sends its buffer up once, and the result comes down once.

Switches that combine k inputs form a tree of depth ⌈log_k n⌉; a message pays the switch latency once per
level. Data stream through, so the bytes are paid once, and up and down at the same time. (R. Graham et al.,
"Scalable Hierarchical Aggregation Protocol (SHArP)", COM-HPC 2016.) Ranks combine nothing.

On a cluster such an algorithm goes through all tiers that the group spans; see `phases.py`.
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log

IN_NETWORK = "in-network"


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
