"""The dissemination barrier: news of who is there doubles its reach in every round.

In round j rank i tells rank i + 2^j that it, and all it has heard from, are there. After ⌈log₂ n⌉ rounds, for
any n, every rank has heard from all. (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier
synchronization", Int. J. Parallel Programming 17 (1988).)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log


class DisseminationBarrier(AbstractAlgorithm):
    """Messages without data."""

    name: ClassVar[str] = "dissemination"
    collective: ClassVar[str] = "barrier"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds."""
        del radix
        return Counts(rounds=ceil_log(ranks, 2), sent=0.0, carried=0.0)
