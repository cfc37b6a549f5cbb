"""Tables of sums, maxima and mixtures against closed forms: Erlang, normal, binomial, order statistics."""

import numpy as np
import pytest
from scipy import stats

from mc.delays import Exponential
from mc.delays.quantiles import at_times, largest_of, odds_of, quantiles_of, sum_of, total_of

ODDS = odds_of()
BELOW, ABOVE = 1 / (1 + np.exp(-ODDS)), 1 / (1 + np.exp(ODDS))
# Of 32 bits.
DRAWN = np.abs(ODDS) <= 23


def exact(law):
    """The table of a law of SciPy, from the nearer end."""
    return np.where(ODDS < 0, law.ppf(BELOW), law.isf(ABOVE))


@pytest.mark.parametrize("count", [1, 2, 3, 8, 50])
def test_exponentials_add_up_to_an_erlang(count):
    found = total_of(quantiles_of(Exponential(1.0)), count)
    np.testing.assert_allclose(found[DRAWN], exact(stats.gamma(count))[DRAWN], rtol=2e-4)


def test_normals_add_up_to_a_normal():
    found = sum_of(exact(stats.norm(1.0, 0.03)), exact(stats.norm(2.0, 0.04)))
    np.testing.assert_allclose(found[DRAWN], exact(stats.norm(3.0, 0.05))[DRAWN], atol=0.05 * 2e-4)


def test_nothing_adds_nothing_and_constants_shift():
    law = exact(stats.expon())
    np.testing.assert_array_equal(total_of(law, 0), 0.0)
    np.testing.assert_array_equal(sum_of(np.full(ODDS.size, 2.0), law), 2.0 + law)


@pytest.mark.parametrize("count", [2, 8])
def test_rare_pauses_add_up_to_a_binomial(count):
    # To the probability of a cell of the table, a hundredth of that of a pause.
    rare = at_times(np.full(ODDS.size, 1e-6), np.full(ODDS.size, 1.0), 0.02)
    found = total_of(rare, count)
    for pauses in range(2):
        late = 1.0 - np.interp(pauses + 0.5, found, BELOW)
        assert late == pytest.approx(stats.binom.sf(pauses, count, 0.02), rel=0.05)


def test_the_largest_of_kinds_multiplies_their_distribution_functions():
    slow, quick = exact(stats.expon(scale=3.0)), exact(stats.expon())
    found = largest_of([slow, quick], [2, 5])
    expected = stats.expon(scale=3.0).cdf(found) ** 2 * stats.expon().cdf(found) ** 5
    inside = np.abs(ODDS) <= 12
    np.testing.assert_allclose(expected[inside], BELOW[inside], rtol=1e-3)
    np.testing.assert_array_equal(largest_of([quick, slow], [1, 0]), largest_of([quick], [1]))
