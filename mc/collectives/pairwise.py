"""Pairwise exchange: in round j rank i sends to i + j and receives from i − j.

All-to-all with every link busy in every round, and no more bytes than must move (Thakur, Rabenseifner, Gropp
2005).
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts


class PairwiseAllToAll(AbstractAlgorithm):
    """n−1 rounds of B/n."""

    name: ClassVar[str] = "pairwise"
    collective: ClassVar[str] = "all-to-all"

    def counts(self, ranks, radix):
        """n−1 rounds; (n−1)/n·B sent."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ranks - 1, sent=share, carried=share)
