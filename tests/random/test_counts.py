"""Binomials and multinomials at given levels, against scipy's quantiles and their own laws."""

import jax
import numpy as np
import pytest
from scipy import stats

from mc.random import binomial_counts, draw_levels, multinomial_counts
from tests.stats import assert_fraction, assert_mean


@pytest.mark.parametrize(
    ("trials", "probability"),
    [(1, 0.3), (7, 0.5), (128, 0.001), (1000, 0.3), (10**6, 1e-6), (10**6, 0.7), (10**9, 3e-8)],
)
def test_binomial_counts_are_the_quantiles(trials, probability):
    levels = np.log(np.random.default_rng(3).random(500))
    expected = stats.binom.ppf(-np.expm1(levels), trials, probability)
    np.testing.assert_array_equal(binomial_counts(levels, trials, probability), expected)


def test_certain_counts():
    levels = np.log([0.2, 0.9])
    np.testing.assert_array_equal(binomial_counts(levels, 5, 0.0), 0)
    np.testing.assert_array_equal(binomial_counts(levels, 5, 1.0), 5)
    np.testing.assert_array_equal(binomial_counts(levels, 0, 0.5), 0)


def test_more_trials_give_more_of_both_kinds(key):
    levels = np.asarray(draw_levels(key, (300,)))
    previous = np.zeros(300), np.zeros(300)
    for trials in (1, 2, 5, 37, 38, 500, 10**5):
        found = binomial_counts(levels, trials, 0.13)
        assert (found >= previous[0]).all()
        assert (trials - found >= previous[1]).all()
        previous = found, trials - found


def test_multinomial_counts(key):
    law = np.array([0.6, 0.3, 0.1])
    counts = multinomial_counts(draw_levels(key, (20_000, 2)), np.full(20_000, 12.0), law)
    np.testing.assert_array_equal(counts.sum(axis=1), 12)
    for kind, probability in enumerate(law):
        assert_mean(counts[:, kind], 12 * probability)
    # The joint law, at one of its points.
    hit = (counts == [8, 3, 1]).all(axis=1)
    assert_fraction(int(hit.sum()), hit.size, stats.multinomial.pmf([8, 3, 1], 12, law))
    with pytest.raises(AssertionError):
        assert_fraction(int(hit.sum()), hit.size, stats.multinomial.pmf([8, 2, 2], 12, law))


def test_kinds_that_never_come(key):
    counts = multinomial_counts(draw_levels(key, (50, 3)), np.full(50, 9.0), np.array([0.0, 1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(counts, np.tile([0, 9, 0, 0], (50, 1)))


def test_rows_have_laws_of_their_own():
    levels = np.asarray(draw_levels(jax.random.key(4), (4000, 2, 1)))
    laws = np.array([[0.9, 0.1], [0.2, 0.8]])
    counts = multinomial_counts(levels, np.array([[10.0, 30.0]] * 4000), laws)
    assert_mean(counts[:, 0, 1], 1.0)
    assert_mean(counts[:, 1, 0], 6.0)
