"""Two binary trees, pipelined: all-reduce as NCCL's "tree".

Half of the buffer is summed up one tree and sent down again, the other half in a second tree whose inner
ranks are the leaves of the first. A rank that is inner in one tree and leaf in the other sends B/2 up twice
and B/2 down to two children: 2B, and receives as much. The buffer goes in pieces that follow each other
closely, so the latency is that of one piece, up and down: the depth is ⌈log₂ n⌉ in NCCL's trees, for every n.

It is the limit of many small pieces. NCCL's own tuner predicts it so: 2·log₂ of the number of nodes latencies
between nodes, and half of the bandwidth (src/graph/tuning.cc). With two ranks either tree has one edge and
each rank sends B; with three the busiest sends 3/2·B; from four on it sends 2B. (P. Sanders, J. Speck, J. L.
Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009).)
"""

from typing import ClassVar

import jax.numpy as jnp

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log


class DoubleTreeAllReduce(AbstractAlgorithm):
    """Up and down two binary trees at once."""

    name: ClassVar[str] = "tree"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2·⌈log₂ n⌉ latencies; 2B through the busiest rank's link; two halves combined with a third."""
        del radix
        return Counts(
            rounds=2 * ceil_log(ranks, 2),
            sent=2 * (ranks - 1) / ranks,
            carried=jnp.minimum(ranks / 2, 2.0),
            combined=jnp.where(ranks > 2, 1.0, 0.5),
        )
