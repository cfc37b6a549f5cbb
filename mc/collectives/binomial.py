"""Binomial trees: in each round every rank that is in reaches one that is not.

The number of ranks reached doubles, so ⌈log₂ n⌉ rounds do for any n; whole buffers travel in each. All-reduce
is a reduce and then a broadcast. (Thakur, Rabenseifner, Gropp 2005; the pairwise floor of every reduction.)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log


class BinomialReduce(AbstractAlgorithm):
    """Pairwise reduction to a root."""

    name: ClassVar[str] = "binomial"
    collective: ClassVar[str] = "reduce"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds of B, each combined; all but the root send B."""
        del radix
        depth = ceil_log(ranks, 2)
        return Counts(rounds=depth, sent=(ranks - 1) / ranks, carried=depth, combined=depth)


class BinomialBroadcast(AbstractAlgorithm):
    """From a root to all."""

    name: ClassVar[str] = "binomial"
    collective: ClassVar[str] = "broadcast"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds of B; all but the root receive B."""
        del radix
        depth = ceil_log(ranks, 2)
        return Counts(rounds=depth, sent=(ranks - 1) / ranks, carried=depth)


class BinomialAllReduce(AbstractAlgorithm):
    """Reduce to a root, then broadcast from it."""

    name: ClassVar[str] = "binomial"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2·⌈log₂ n⌉ rounds of B."""
        del radix
        depth = ceil_log(ranks, 2)
        return Counts(rounds=2 * depth, sent=2 * (ranks - 1) / ranks, carried=2 * depth, combined=depth)
