"""Recursive halving, then doubling: Rabenseifner's all-reduce.

A reduce-scatter by recursive halving and an all-gather by recursive doubling: as few bytes as a ring in
logarithmically many rounds. For n that is not a power of 2, with p the largest power of 2 below and r = n −
p, r ranks first give their buffer to a partner and get the result at the end, as in MPICH: two rounds more
that carry B each. (R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; R. Thakur,
R. Rabenseifner, W. Gropp, IJHPCA 19 (2005).)
"""

from typing import ClassVar

import jax.numpy as jnp

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts
from mc.collectives.integers import floor_power_of_two


class HalvingDoublingAllReduce(AbstractAlgorithm):
    """2·⌊log₂ n⌋ rounds, and two more unless n is a power of 2."""

    name: ClassVar[str] = "halving-doubling"
    collective: ClassVar[str] = "all-reduce"

    def counts(self, ranks, radix):
        """2(p−1)/p·B + 2·[r > 0]·B on the longest path; on average 2(p−1)/n + 2r/n = 2(n−1)/n·B sent."""
        del radix
        doublings, power = floor_power_of_two(ranks)
        share = (power - 1) / power
        extra = jnp.where(ranks > power, 1.0, 0.0)
        return Counts(
            rounds=2 * (doublings + extra),
            sent=2 * (ranks - 1) / ranks,
            carried=2 * (share + extra),
            combined=share + extra,
        )
