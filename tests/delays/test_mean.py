"""Means by the trapezoidal rule over log-odds against closed forms."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, Discrete, Exponential, GeneralisedPareto, Lognormal, Shifted, Slowest
from tests.delays.laws import MEASURED, prepared

CLOSED_FORMS = {
    "constant": 3e-4,
    "exponential": 2e-5,
    "shifted exponential": 1.2e-4,
    "lognormal": 1e-4 * math.exp(0.5**2 / 2),
    "lognormal, wide": 1e-5 * math.exp(2.0**2 / 2),
    "gamma 0.4": 0.4e-5,
    "gamma 10000": 1e-4,
    "weibull": 1e-4 * math.gamma(1 + 1 / 3),
    "weibull, stretched": 1e-5 * math.gamma(3),
    "pareto": 1e-5 / 0.7,
    "pareto, bounded": 1e-5 / 1.4,
    "pareto 0": 1e-5,
    "scaled": 1.7e-4 * math.exp(0.5**2 / 2),
    "rare pauses": 0.999 * 1e-4 * math.exp(0.02**2 / 2) + 1e-3 * 1.1e-3,
    "erlang": 2e-5,
}

_MEAN = eqx.filter_jit(lambda law: law.mean())


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name):
    np.testing.assert_allclose(_MEAN(prepared(name)), CLOSED_FORMS[name], rtol=2e-5)


@pytest.mark.parametrize("ranks", [1, 2, 8, 1_000, 1_000_000])
def test_slowest_exponential_is_harmonic(ranks):
    harmonic = np.sum(1.0 / np.arange(1, ranks + 1))
    np.testing.assert_allclose(_MEAN(Slowest(Exponential(2e-5), ranks)), 2e-5 * harmonic, rtol=1e-5)
    np.testing.assert_allclose(
        _MEAN(Slowest(Shifted(Exponential(2e-5), 1e-4), ranks)), 1e-4 + 2e-5 * harmonic, rtol=1e-5
    )


@pytest.mark.parametrize("shape", [0.3, 0.0, -0.4])
def test_slower_of_two_pareto(shape):
    """E max = 2·E T − E min, and the faster of two is generalised Pareto with both parameters halved."""
    expected = 2 / (1 - shape) - 0.5 / (1 - shape / 2)
    np.testing.assert_allclose(_MEAN(Slowest(GeneralisedPareto(1.0, shape), 2)), expected, rtol=1e-5)


def test_slower_of_two_lognormal():
    """E max = 2·E T·Φ(σ/√2)."""
    expected = 2 * math.exp(0.5**2 / 2) * stats.norm.cdf(0.5 / math.sqrt(2))
    np.testing.assert_allclose(_MEAN(Slowest(Lognormal(1.0, 0.5), 2)), expected, rtol=1e-5)


def test_empirical_mean_is_that_of_the_samples():
    """But for the tail, where a fitted law stands for a tenth of them: a few standard errors of that tenth."""
    tail = np.sort(MEASURED)[-400:]
    error = 0.1 * tail.std() / math.sqrt(tail.size)
    assert abs(float(_MEAN(prepared("empirical"))) - MEASURED.mean()) < 2 * error


def test_a_jump_costs_at_most_one_per_cent_of_it():
    law = Discrete(jnp.array([1.0, 2.0]), jnp.array([0.9, 0.1]))
    assert abs(float(law.mean()) - 1.1) < 0.01
    assert float(Constant(0.0).mean()) == 0.0
