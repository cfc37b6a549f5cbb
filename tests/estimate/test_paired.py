"""Differences of two sets: known ones, and their coverage."""

import numpy as np
import pytest

from mc.estimate.paired import mean_difference, quantile_difference
from tests.stats import ALPHA

RANDOM = np.random.default_rng(7)


def test_the_same_samples_differ_by_exactly_nothing():
    samples = RANDOM.lognormal(size=(5, 40))
    for found in (
        mean_difference(samples, samples.copy(), paired=True),
        quantile_difference(samples, samples.copy(), 0.99, paired=True),
    ):
        assert found.value == found.low == found.high == 0.0


@pytest.mark.parametrize("shape", [(1, 200), (5, 40)])
def test_a_constant_more_is_that_constant(shape):
    samples = RANDOM.integers(1, 1000, size=shape) + 0.0
    for found in (
        mean_difference(samples, samples + 2.0, paired=True),
        quantile_difference(samples, samples + 2.0, 0.9, paired=True),
    ):
        assert found.value == found.low == found.high == 2.0


def test_pairs_are_narrower():
    noise = RANDOM.exponential(size=(1, 2000))
    after = noise + 0.01 * RANDOM.exponential(size=noise.shape)
    for pairs, apart in (
        [mean_difference(noise, after, paired=paired) for paired in (True, False)],
        [quantile_difference(noise, after, 0.5, paired=paired) for paired in (True, False)],
    ):
        assert pairs.value == pytest.approx(apart.value, rel=1e-9)
        assert 5.0 * (pairs.high - pairs.low) < apart.high - apart.low


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_cover_the_difference_of_two_exponential_laws(paired):
    """Medians log 2 and 2·log 2, means 1 and 2; at 95 % of 200 fewer than 160 hits have a chance below 1e-9."""
    hits = np.zeros(2)
    for _ in range(200):
        before = RANDOM.exponential(size=(1, 300))
        after = 2.0 * (before if paired else RANDOM.exponential(size=before.shape))
        mean = mean_difference(before, after, paired=paired)
        median = quantile_difference(before, after, 0.5, paired=paired)
        hits += [mean.low <= 1.0 <= mean.high, median.low <= np.log(2.0) <= median.high]
    assert ALPHA >= 1e-9
    assert (hits >= 160).all()


def test_one_step_says_nothing_of_the_spread():
    found = quantile_difference(np.ones((1, 1)), np.full((1, 1), 3.0), 0.5, paired=False)
    assert (found.value, found.low, found.high) == (2.0, -np.inf, np.inf)
