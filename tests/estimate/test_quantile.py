"""Order-statistic intervals against the binomial law, counted out by scipy, and cases with known answers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mc.estimate import QUANTILES, quantile_estimate


def ranks_by_counting(count, probability, confidence):
    """The largest lower and smallest upper rank that miss with at most α/2, by trying every rank."""
    tail = (1 - confidence) / 2
    below = stats.binom.cdf(np.arange(-1, count), count, probability)  # P(B <= l - 1) for l = 0 ... count
    above = stats.binom.sf(np.arange(-1, count), count, probability)  # P(B >= u) for u = 0 ... count
    lower = max((rank for rank in range(1, count + 1) if below[rank] <= tail), default=None)
    upper = min((rank for rank in range(1, count + 1) if above[rank] <= tail), default=None)
    return lower, upper


@pytest.mark.parametrize("count", [1, 2, 20, 59, 60, 200, 299, 2000, 5000])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("probability", QUANTILES.values())
def test_ranks_are_the_binomials(count, confidence, probability):
    ranks = np.random.default_rng(count).permutation(np.arange(1.0, count + 1))
    found, size = quantile_estimate(ranks, probability, confidence)
    lower, upper = ranks_by_counting(count, probability, confidence)
    assert found.low == (-math.inf if lower is None else lower)
    assert found.high == (math.inf if upper is None else upper)
    assert size == count


def test_published_table_for_the_median():
    """Any table of sign-test intervals, n = 20 at 95 %: the 6th and the 15th observation."""
    found, _ = quantile_estimate(np.arange(1.0, 21.0), 0.5, 0.95)
    assert (found.low, found.high) == (6.0, 15.0)


@pytest.mark.parametrize(
    ("count", "bounded"),
    # P(no sample above the quantile) = pⁿ must be at most 2.5 %: n >= ln 0.025 / ln 0.999 = 3687.03 (Wilks
    # 1941).
    [(200, False), (3687, False), (3688, True)],
)
def test_p99_9_is_bounded_from_above_only_with_enough_samples(count, bounded):
    found, _ = quantile_estimate(np.random.default_rng(0).exponential(size=count), 0.999, 0.95)
    assert math.isfinite(found.high) == bounded
    assert math.isfinite(found.low)


@given(
    st.lists(st.floats(0.0, 1e6, width=32), min_size=1, max_size=60),
    st.sampled_from(sorted(QUANTILES.values())),
    st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
@settings(max_examples=200, deadline=None)
def test_value_lies_in_its_interval_and_scales_with_the_unit(values, probability, confidence):
    found, _ = quantile_estimate(values, probability, confidence)
    assert found.low <= found.value <= found.high
    assert found.value == np.quantile(values, probability, method="inverted_cdf")
    doubled, _ = quantile_estimate(2.0 * np.asarray(values), probability, confidence)
    assert (doubled.low, doubled.value, doubled.high) == (2 * found.low, 2 * found.value, 2 * found.high)


def test_identical_steps_within_a_realisation_count_once():
    """Perfect correlation: as many samples as realisations, and the interval is theirs."""
    per_realisation = np.random.default_rng(1).exponential(size=(200, 1))
    repeated, size = quantile_estimate(np.repeat(per_realisation, 40, axis=1), 0.5)
    once, _ = quantile_estimate(per_realisation, 0.5)
    assert size == 200
    assert (repeated.low, repeated.high) == (once.low, once.high)


def test_independent_steps_in_realisations_cost_little():
    """The true design effect is 1; lost are the Student factor of 99 clusters and the estimate's noise."""
    values = np.random.default_rng(2).exponential(size=(100, 50))
    _, size = quantile_estimate(values, 0.5)
    assert 0.5 * values.size < size <= values.size


def test_design_effect_of_normal_realisations():
    """Indicators of the median correlate by (2/π) asin(ρ), so deff = 1 + (M − 1)(2/π) asin(ρ)."""
    rho, rows, columns = 0.5, 4000, 20
    rng = np.random.default_rng(3)
    shared, own = rng.standard_normal((rows, 1)), rng.standard_normal((rows, columns))
    _, size = quantile_estimate(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own, 0.5)
    expected = rows * columns / (1 + (columns - 1) * 2 / np.pi * np.arcsin(rho))
    # s² of 4,000 clusters has a relative standard error below sqrt(2/3999) = 2.2 % (proportions are flatter
    # than normal).
    assert size == pytest.approx(expected, rel=6 * 0.022)


@pytest.mark.parametrize("shape", [(500,), (1, 500), (500, 1), (5, 100)])
def test_constant_samples_are_certain_where_they_are_bounded(shape):
    found, size = quantile_estimate(np.full(shape, 1.5e-4, np.float32), 0.5)
    assert found.low == found.value == found.high == np.float32(1.5e-4)
    assert size == 500


def test_two_realisations_bound_no_tail():
    values = np.array([[1.0] * 5000, [2.0] * 5000])
    found, _ = quantile_estimate(values, 0.99)
    assert found.high == math.inf


@pytest.mark.parametrize(
    ("samples", "probability", "confidence", "message"),
    [
        ([], 0.5, 0.95, "expected samples of shape (realisations, steps), not empty; got shape (0,)"),
        (np.ones((2, 2, 2)), 0.5, 0.95, "got shape (2, 2, 2)"),
        ([1.0, np.nan], 0.5, 0.95, "expected finite samples; got 1 of 2"),
        ([1.0, np.inf], 0.5, 0.95, "expected finite samples; got 1 of 2"),
        ([1.0], 1.0, 0.95, "expected a quantile's probability between 0 and 1; got 1.0"),
        ([1.0], 0.5, 95, "expected a confidence between 0 and 1, such as 0.95; got 95"),
    ],
)
def test_refuses(samples, probability, confidence, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        quantile_estimate(samples, probability, confidence)
    assert message in str(error.value)
