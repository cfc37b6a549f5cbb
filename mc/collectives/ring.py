"""Rings: each rank passes on to its right neighbour what came from its left one.

All-reduce is a reduce-scatter, in which the sum of each n-th of the buffer travels once round, and an
all-gather, in which the result does. Each moves (n−1)/n of the buffer through every link: no algorithm moves
less. (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
(2009).) Nothing here asks n to be a power of 2.

Broadcast and reduce are chains with the buffer in pieces that follow each other closely: the last piece
arrives n−1 latencies after it was sent. That is the limit of many small pieces, as in NCCL, where sending a
piece does not wait for the piece before to arrive.
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts


class RingAllReduce(AbstractAlgorithm):
    """2(n−1) rounds of B/n."""

    name: ClassVar[str] = "ring"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2(n−1) rounds; 2(n−1)/n·B sent; (n−1)/n·B combined."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=2 * (ranks - 1), sent=2 * share, carried=2 * share, combined=share)


class RingReduceScatter(AbstractAlgorithm):
    """n−1 rounds of B/n."""

    name: ClassVar[str] = "ring"
    collective: ClassVar[str] = "reduce-scatter"

    def counts(self, ranks, radix):
        """n−1 rounds; (n−1)/n·B sent and combined."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ranks - 1, sent=share, carried=share, combined=share)


class RingAllGather(AbstractAlgorithm):
    """n−1 rounds of B/n."""

    name: ClassVar[str] = "ring"
    collective: ClassVar[str] = "all-gather"

    def counts(self, ranks, radix):
        """n−1 rounds; (n−1)/n·B sent."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ranks - 1, sent=share, carried=share)


class RingBroadcast(AbstractAlgorithm):
    """A pipelined chain from the root."""

    name: ClassVar[str] = "ring"
    collective: ClassVar[str] = "broadcast"

    def counts(self, ranks, radix):
        """n−1 latencies; B through each link; the last rank sends nothing."""
        del radix
        return Counts(rounds=ranks - 1, sent=(ranks - 1) / ranks, carried=1.0)


class RingReduce(AbstractAlgorithm):
    """A pipelined chain to the root."""

    name: ClassVar[str] = "ring"
    collective: ClassVar[str] = "reduce"

    def counts(self, ranks, radix):
        """n−1 latencies; B through each link, combined on the way; the root sends nothing."""
        del radix
        return Counts(rounds=ranks - 1, sent=(ranks - 1) / ranks, carried=1.0, combined=1.0)
