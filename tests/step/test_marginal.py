"""The slowest of n over realisations, against products of the distribution functions of independent units."""

import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, Exponential, ParameterError
from mc.step import Compute, Persistent, SharedNoise
from mc.step.marginal import slowest_over_realisations

TIMES = np.array([0.2, 1.0, 2.5, 6.0])


def finished(t):
    return stats.expon.cdf(t)


def cdf(compute, ranks):
    return np.exp(np.asarray(slowest_over_realisations(compute, ranks).log_cdf(TIMES), np.float64))


def test_ranks_alone():
    np.testing.assert_allclose(cdf(Compute(Exponential(1.0), 1e9), 5), finished(TIMES) ** 5, rtol=1e-5)


def test_slow_chips_are_a_mixture_over_realisations():
    """Each is slow with probability 0.1 independently: ((1 - f)·F(t) + f·F(t/s))^n."""
    compute = Compute(Exponential(1.0), 100, (Persistent("slow", 1, 0.1, 3.0),))
    one = 0.9 * finished(TIMES) + 0.1 * finished(TIMES / 3)
    np.testing.assert_allclose(cdf(compute, 7), one**7, rtol=1e-5)
    # Negative control: the law of a realisation with as many slow ones as are expected is another.
    assert abs(cdf(compute, 10) - finished(TIMES) ** 9 * finished(TIMES / 3)).max() > 0.01


def test_what_units_share_comes_once_for_each():
    """Units of 4 that pause for 2 with probability 0.3, and that are slow; 6 ranks fill one of them and begin another."""
    pause = SharedNoise(4, pause_probability=0.3, pause=Constant(2.0))
    slow = Persistent("slow unit", 4, 0.2, 1.5)
    compute = Compute(Exponential(1.0), 64, (slow,), (pause,), every_rank=64)

    def unit(t, ranks):
        return 0.7 * finished(t) ** ranks + 0.3 * finished(np.maximum(t - 2, 0)) ** ranks

    def slowed(t, ranks):
        return 0.8 * unit(t, ranks) + 0.2 * unit(t / 1.5, ranks)

    np.testing.assert_allclose(cdf(compute, 8), slowed(TIMES, 4) ** 2, rtol=1e-4)
    np.testing.assert_allclose(cdf(compute, 3), slowed(TIMES, 3), rtol=1e-4)


def test_kinds_of_chips_have_no_one_law():
    compute = Compute(Exponential(1.0), 8, kinds=((4, 1.0), (4, 2.0)))
    with pytest.raises(ParameterError, match="expected chips of one kind; got several"):
        slowest_over_realisations(compute, 8)
