"""Measured times: the body follows the samples, the tail goes beyond the largest of them, a coarse clock does no harm."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Empirical, Slowest
from tests.delays.laws import MEASURED


def test_body_follows_the_samples():
    """Within the width of a few order statistics, over the nine tenths below the tail."""
    law = Empirical.fit(MEASURED)
    probability = np.linspace(0.01, 0.89, 89)
    found = np.asarray(law.quantile(jnp.log1p(-jnp.asarray(probability))))
    np.testing.assert_allclose(found, np.quantile(MEASURED, probability, method="hazen"), rtol=1e-3)


def test_tail_goes_beyond_the_largest_sample():
    """The slowest of 10⁵ is estimated, not cut at the slowest of 4,000: near the lognormal that was measured."""
    median = float(Slowest(Empirical.fit(MEASURED), 1e5).quantile(jnp.log(0.5)))
    truth = stats.lognorm(0.3, scale=2e-4).isf(-np.expm1(np.log(0.5) / 1e5))
    assert median > MEASURED.max()
    assert abs(np.log(median / truth)) < 0.15


@pytest.mark.parametrize("clock", [1e-6, 1e-5])
def test_ties_of_a_coarse_clock(clock):
    """S is that of the samples just above each tick, to the resolution of the knots; the inverse is one."""
    samples = np.round(stats.lognorm(0.3, scale=1e-4).rvs(20_000, random_state=20261202) / clock) * clock
    law = Empirical.fit(samples)
    assert np.all(np.diff(np.asarray(law.times)) > 0)
    ticks = np.unique(samples)
    ticks = ticks[ticks < np.quantile(samples, 0.89)]
    found = np.exp(np.asarray(law.log_survival(jnp.asarray(ticks * (1 + 1e-4))), np.float64))
    assert np.abs(found - [np.mean(samples > tick) for tick in ticks]).max() < 2e-3
    levels = jnp.log(jnp.linspace(0.995, 0.005, 50))
    back = law.log_survival(law.quantile(levels) * (1 + 1e-6))
    assert np.all(np.asarray(back) <= np.asarray(levels) + 1e-3)


def test_few_samples():
    """As many as there must be, in any order and shape."""
    samples = stats.expon(scale=1e-4).rvs((20, 10), random_state=1)
    law = Empirical.fit(samples)
    assert float(law.quantile(jnp.log(0.5))) == pytest.approx(np.median(samples), rel=0.02)
