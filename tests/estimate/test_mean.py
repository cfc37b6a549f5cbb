"""Means: equal to Student's t without skewness, to Hall's published cubic with it; constants; clusters."""

import math

import numpy as np
import pytest
from scipy import stats

from mc.estimate import mean_estimate, ratio_estimate


def test_symmetric_samples_give_the_student_interval():
    values = np.concatenate([np.random.default_rng(0).normal(size=15)])
    values = np.concatenate([values, -values]) + 3.0
    found, size = mean_estimate(values, 0.9)
    low, high = stats.t.interval(0.9, values.size - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.value == pytest.approx(3.0)
    assert size == 30


def test_interval_ends_solve_halls_equation():
    """Hall (1992): t + γt²/(3√n) + γ²t³/(27n) + γ/(6√n) is ± the Student quantile at the two ends."""
    values = np.random.default_rng(1).lognormal(size=80)
    found, _ = mean_estimate(values, 0.95)
    root, gamma = math.sqrt(values.size), stats.skew(values)
    for end, sign in ((found.low, 1.0), (found.high, -1.0)):
        t = (values.mean() - end) / stats.sem(values)
        g = t + gamma * t**2 / (3 * root) + gamma**2 * t**3 / (27 * values.size) + gamma / (6 * root)
        assert g == pytest.approx(sign * stats.t.ppf(0.975, values.size - 1), rel=1e-9)
    assert found.high - found.value > found.value - found.low


def test_realisations_are_the_units():
    """The interval of clusters is that of the clusters' means, whatever happens within."""
    values = np.random.default_rng(2).exponential(size=(12, 70)) * np.linspace(1, 2, 12)[:, None]
    clustered, _ = mean_estimate(values)
    units, _ = mean_estimate(values.mean(axis=1))
    assert (clustered.value, clustered.low, clustered.high) == pytest.approx(
        (units.value, units.low, units.high)
    )


def test_effective_size_of_correlated_steps():
    """Var(mean) = σ²(1 + (M − 1)ρ)/(RM): the effective size is RM/(1 + (M − 1)ρ)."""
    rho, rows, columns = 0.3, 4000, 10
    rng = np.random.default_rng(3)
    shared, own = rng.standard_normal((rows, 1)), rng.standard_normal((rows, columns))
    _, size = mean_estimate(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)
    # The ratio of two variances, each within 2.2 % (one standard error, 4,000 clusters).
    assert size == pytest.approx(rows * columns / (1 + (columns - 1) * rho), rel=6 * 0.03)


@pytest.mark.parametrize("shape", [(40,), (1, 40), (4, 10), (40, 1)])
def test_constants_are_exact(shape):
    found, size = mean_estimate(np.full(shape, 0.1, np.float32))
    assert found.low == found.value == found.high == float(np.float32(0.1))
    assert size == 40


def test_small_jitter_on_a_long_step_keeps_its_digits():
    jitter = np.tile([0.0, 1.0], 50)
    found, _ = mean_estimate(1e9 + jitter)
    assert found.value == 1e9 + 0.5
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 99) * stats.sem(jitter), rel=1e-6)


def test_one_sample_bounds_nothing():
    found, _ = mean_estimate([2.0])
    assert (found.value, found.low, found.high) == (2.0, -math.inf, math.inf)


def test_ratio_of_proportional_samples_is_certain():
    values = np.random.default_rng(4).exponential(size=(5, 20))
    found = ratio_estimate(0.25 * values, values)
    assert (found.low, found.value, found.high) == pytest.approx((0.25, 0.25, 0.25))


def test_ratio_agrees_with_the_delta_method():
    """Cochran (1977), ch. 6: s²(R) = Σ(y − Rx)² / (n(n − 1)x̄²); symmetric residuals, so no skewness."""
    x = np.tile([1.0, 2.0, 3.0], 2)
    y = 0.5 * x + np.repeat([0.1, -0.1], 3)
    found = ratio_estimate(y, x)
    error = math.sqrt(np.sum((y - 0.5 * x) ** 2) / (6 * 5)) / 2.0
    assert found.value == pytest.approx(0.5)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 5) * error)


def test_ratio_refuses_a_zero_denominator():
    with pytest.raises(ValueError, match="expected a denominator whose mean is not zero; got 0"):
        ratio_estimate([1.0, 2.0], [0.0, 0.0])
