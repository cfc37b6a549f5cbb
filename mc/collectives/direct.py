"""Everything at once: each rank sends straight to each receiver, without rounds.

A fabric that connects all pairs takes all messages at the same time: one latency, and the sender's and the
receiver's link carry what they must. Of several tiers each carries what leaves the units below it, (n−r)/n·B with r
ranks in one, and the slowest decides: nccl-tests on two nodes of eight H100s reports 23.6 GB/s where each card
carries 12.6 of the 15.1 GB/s that send-recv reaches. In rounds, as pairwise, there is always someone whose block
crosses. Send-recv has one receiver: as in nccl-tests every rank sends B to the next.
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts


class DirectAllToAll(AbstractAlgorithm):
    """All n−1 messages of B/n at once."""

    name: ClassVar[str] = "direct"
    collective: ClassVar[str] = "all-to-all"

    def counts(self, ranks, radix):
        """One latency; (n−1)/n·B sent."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=1.0, sent=share, carried=share)


class DirectSendRecv(AbstractAlgorithm):
    """One message of B."""

    name: ClassVar[str] = "direct"
    collective: ClassVar[str] = "send-recv"

    def counts(self, ranks, radix):
        """One latency; B sent."""
        del ranks, radix
        return Counts(rounds=1.0, sent=1.0, carried=1.0)
