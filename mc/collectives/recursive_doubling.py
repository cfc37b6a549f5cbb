"""Recursive doubling: after round j every rank knows what 2^j ranks knew.

All-reduce (Thakur, Rabenseifner, Gropp 2005): whole buffers are exchanged with the partner at distance 1, 2,
4, …. For n that is not a power of 2, let p be the largest power of 2 below and r = n − p: first r ranks give
their buffer to a partner, p ranks run the algorithm, and at the end the r ranks get the result, which is two
rounds more.

All-gather: at powers of 2 the exchange above with buffers that double. Otherwise the same by dissemination
(J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
IEEE TPDS 8 (1997)): in round j rank i sends to i − 2^j what it holds of the next 2^j ranks, and in the last
round only what is missing. Both take ⌈log₂ n⌉ rounds and (n−1)/n·B.
"""

from typing import ClassVar

import jax.numpy as jnp

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import ceil_log, floor_power_of_two


class RecursiveDoublingAllReduce(AbstractAlgorithm):
    """Whole buffers, ⌊log₂ n⌋ rounds, and two more unless n is a power of 2."""

    name: ClassVar[str] = "recursive-doubling"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """log₂ p + 2·[r > 0] rounds of B; p ranks send B in each of log₂ p, r ranks give one and get one."""
        del radix
        doublings, power = floor_power_of_two(ranks)
        extra = jnp.where(ranks > power, 1.0, 0.0)
        rounds = doublings + 2 * extra
        sent = (power * doublings + 2 * (ranks - power)) / ranks
        return Counts(rounds=rounds, sent=sent, carried=rounds, combined=doublings + extra)


class RecursiveDoublingAllGather(AbstractAlgorithm):
    """Buffers that double: ⌈log₂ n⌉ rounds for any n."""

    name: ClassVar[str] = "recursive-doubling"
    collective: ClassVar[str] = "all-gather"

    def counts(self, ranks, radix):
        """⌈log₂ n⌉ rounds; (n−1)/n·B sent."""
        del radix
        share = (ranks - 1) / ranks
        return Counts(rounds=ceil_log(ranks, 2), sent=share, carried=share)
