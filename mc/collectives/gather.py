"""Gather to a root and scatter from it: a part of B/n for each rank, by a binomial tree or straight.

In the tree a rank passes on the parts of all ranks below it, so ⌈log₂ n⌉ rounds do, and each part travels as
often as its rank has ones. Either way all parts but the root's own go through the root's port. (R. Thakur, R.
Rabenseifner, W. Gropp, IJHPCA 19 (2005).)
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log, ones_below


def _binomial(ranks) -> Counts:
    # Σ_{i<n} (ones of i) parts are sent, each 1/n of the buffer, by n ranks. The largest messages of all
    # rounds reach the root: 1, 2, 4, … parts and what is left.
    share = (ranks - 1) / ranks
    return Counts(rounds=ceil_log(ranks, 2), sent=ones_below(ranks) / ranks**2, carried=share)


def _direct(ranks) -> Counts:
    share = (ranks - 1) / ranks
    return Counts(rounds=1.0, sent=share / ranks, carried=share)


class BinomialGather(AbstractAlgorithm):
    """⌈log₂ n⌉ rounds of messages that double."""

    name: ClassVar[str] = "binomial"
    collective: ClassVar[str] = "gather"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds; the root takes in (n−1)/n·B; S(n)/n²·B sent on average."""
        del radix
        return _binomial(ranks)


class BinomialScatter(AbstractAlgorithm):
    """⌈log₂ n⌉ rounds of messages that halve."""

    name: ClassVar[str] = "binomial"
    collective: ClassVar[str] = "scatter"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds; the root gives out (n−1)/n·B; S(n)/n²·B sent on average."""
        del radix
        return _binomial(ranks)


class DirectGather(AbstractAlgorithm):
    """All n−1 messages at once."""

    name: ClassVar[str] = "direct"
    collective: ClassVar[str] = "gather"

    def counts(self, ranks, radix):
        """One latency; the root takes in (n−1)/n·B."""
        del radix
        return _direct(ranks)


class DirectScatter(AbstractAlgorithm):
    """All n−1 messages at once."""

    name: ClassVar[str] = "direct"
    collective: ClassVar[str] = "scatter"

    def counts(self, ranks, radix):
        """One latency; the root gives out (n−1)/n·B."""
        del radix
        return _direct(ranks)
