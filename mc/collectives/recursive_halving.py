"""Recursive halving: reduce-scatter as all-gather by recursive doubling run backwards.

What was copied there is combined here. For any n, each rank receives in round j the partial sums of up to 2^j
parts; ⌈log₂ n⌉ rounds and (n−1)/n·B, which is the least of both. It needs an operation that commutes. (M.
Bernaschi, G. Iannello, M. Lauria, "Efficient implementation of reduce-scatter in MPI", J. Systems
Architecture 49 (2003); J. L. Träff, arXiv 2410.14234 (2024).)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log


class RecursiveHalvingReduceScatter(AbstractAlgorithm):
    """Buffers that halve: ⌈log₂ n⌉ rounds for any n."""

    name: ClassVar[str] = "recursive-halving"
    collective: ClassVar[str] = "reduce-scatter"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds; (n−1)/n·B sent and combined."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ceil_log(ranks, 2), sent=share, carried=share, combined=share)
