"""Noise of ranks that the tests share, whose tables take a while to make."""

from functools import cache

from mc.delays import Constant, Exponential, Lognormal
from mc.training import QuantileTable, RankNoise, tabulate_slowness

SIGMA = 0.05
SPREAD = RankNoise(spread=Lognormal(1.0, SIGMA))
# Of an operation of a millisecond.
SECONDS = 1e-3
ALL = RankNoise(Lognormal(1.0, SIGMA), Exponential(3e-5), Constant(5e-3), 0.02)
# Four ranks, of which none or one is slow.
PROFILES = [[(1.0, 4, 0)], [(1.0, 3, 0), (1.5, 1, 0)]]


@cache
def table_of_all() -> QuantileTable:
    """Of `ALL`, for operations of `SECONDS`, by `PROFILES`."""
    return tabulate_slowness(ALL, [SECONDS], PROFILES)
