"""Two rings in opposite directions, each with half of the buffer.

A rank sends as much as in one ring, in as many rounds, but to both neighbours. So on the machine of these
formulas, where a rank has one port of a given bandwidth, it costs what the ring costs. It pays off where the
links to the two neighbours are different ones, as on a torus: one ring uses half of them. (N. Jain, Y.
Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", ICS 2010.)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts

BIDIRECTIONAL_RING = "bidirectional-ring"


class BidirectionalRingAllReduce(AbstractAlgorithm):
    """2(n−1) rounds of B/2n to either side."""

    name: ClassVar[str] = BIDIRECTIONAL_RING
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2(n−1) rounds; 2(n−1)/n·B sent, half to each side; (n−1)/n·B combined."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=2 * (ranks - 1), sent=2 * share, carried=2 * share, combined=share)


class BidirectionalRingReduceScatter(AbstractAlgorithm):
    """n−1 rounds of B/2n to either side."""

    name: ClassVar[str] = BIDIRECTIONAL_RING
    collective: ClassVar[str] = "reduce-scatter"

    def counts(self, ranks, radix):
        """n−1 rounds; (n−1)/n·B sent and combined."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ranks - 1, sent=share, carried=share, combined=share)


class BidirectionalRingAllGather(AbstractAlgorithm):
    """n−1 rounds of B/2n to either side."""

    name: ClassVar[str] = BIDIRECTIONAL_RING
    collective: ClassVar[str] = "all-gather"

    def counts(self, ranks, radix):
        """n−1 rounds; (n−1)/n·B sent."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ranks - 1, sent=share, carried=share)
