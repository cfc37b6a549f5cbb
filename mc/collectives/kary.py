"""Trees in software that combine k buffers in a round.

A rank takes in k−1 buffers, which travel together: their latency is paid once, but they share the receiver's
link and its arithmetic. So a round costs α + (k−1)(B/bandwidth + B·γ), and there are ⌈log_k n⌉; the last of
them combines only what is left, ⌈n/k^(⌈log_k n⌉−1)⌉. A large k trades bandwidth for latency; k = 2 is the
binomial tree.

The radix is that of the machine: on a cluster it is the tier's `reduction_radix` where there is one, and 4
otherwise.
"""

from typing import ClassVar

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import tree_shape


def _messages(ranks, radix):
    """The depth of the tree, and how many buffers the root takes in one after the other."""
    depth, last = tree_shape(ranks, radix)
    return depth, (depth - 1) * (radix - 1) + last - 1


class KaryReduce(AbstractAlgorithm):
    """Up only."""

    name: ClassVar[str] = "k-ary"
    collective: ClassVar[str] = "reduce"

    def counts(self, ranks, radix):
        """⌈log_k n⌉ rounds; all but the root send B; the root takes in k−1 buffers a round."""
        depth, messages = _messages(ranks, radix)
        return Counts(rounds=depth, sent=(ranks - 1) / ranks, carried=messages, combined=messages)


class KaryBroadcast(AbstractAlgorithm):
    """Down only."""

    name: ClassVar[str] = "k-ary"
    collective: ClassVar[str] = "broadcast"

    def counts(self, ranks, radix):
        """⌈log_k n⌉ rounds; all but the root receive B; the root sends k−1 buffers a round."""
        depth, messages = _messages(ranks, radix)
        return Counts(rounds=depth, sent=(ranks - 1) / ranks, carried=messages)


class KaryAllReduce(AbstractAlgorithm):
    """Up, then down."""

    name: ClassVar[str] = "k-ary"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2·⌈log_k n⌉ rounds."""
        depth, messages = _messages(ranks, radix)
        return Counts(rounds=2 * depth, sent=2 * (ranks - 1) / ranks, carried=2 * messages, combined=messages)
