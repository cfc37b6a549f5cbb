"""Bruck's all-to-all: blocks travel to their destination by the binary digits of the distance.

In round j every rank passes on, to the rank 2^j further, the blocks whose distance has bit j: ⌈log₂ n⌉ rounds
for any n, and each block travels as often as its distance has ones. Few rounds for small messages, paid with
bytes. (J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, IEEE TPDS 8 (1997).)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log, ones_below


class BruckAllToAll(AbstractAlgorithm):
    """⌈log₂ n⌉ rounds."""

    name: ClassVar[str] = "bruck"
    collective: ClassVar[str] = "all-to-all"

    def counts(self, ranks, radix):
        """Σ_{d<n} (ones of d)/n·B sent, which is ½·log₂ n·B at powers of 2."""
        del radix
        share = ones_below(ranks) / ranks
        return Counts(rounds=ceil_log(ranks, 2), sent=share, carried=share)
