"""Waiting for all but the slowest k of n, against binomial sums, closed forms and draws of every rank."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from mc.delays import Exponential, Lognormal, ParameterError, Shifted, Slowest, draw, wait_for_all_but
from mc.delays.order_statistic import beta_levels
from tests.stats import assert_same_law

CASES = [(0, 16), (1, 8), (3, 64), (82, 16384), (500, 512), (5000, 10**6), (1, 10**9)]


def _odds(log_s: np.ndarray) -> np.ndarray:
    return np.log(-np.expm1(log_s)) - log_s


def _exact(dropped: int, ranks: int, survival: np.ndarray, finished: np.ndarray) -> np.ndarray:
    """Log-odds that at most `dropped` of `ranks` are late, each tail by its own beta function in 64 bits."""
    late = special.betainc(dropped + 1, ranks - dropped, survival)
    done = special.betainc(ranks - dropped, dropped + 1, finished)
    small = late < 0.5
    with np.errstate(divide="ignore"):
        log_late = np.where(small, np.log(late), np.log1p(-done))
        log_done = np.where(small, np.log1p(-late), np.log(done))
    return log_done - log_late


@pytest.mark.parametrize(("dropped", "ranks"), CASES)
def test_levels_are_beta_quantiles_in_both_tails(dropped, ranks):
    levels = beta_levels(dropped, ranks)
    level = -jnp.concatenate([jnp.logspace(-19, 1.6, 60), jnp.array([0.5, 20.0, 43.0])])
    one = np.asarray(levels.of_one(level), np.float64)
    # A rounding of the level of one rank is worth so much in log-odds of the whole.
    rounding = 2e-6 + 3e-7 * np.abs(_odds(one)) * float(np.max(1 / np.asarray(levels.slopes)))
    exact = _exact(dropped, ranks, np.exp(one), -np.expm1(one))
    np.testing.assert_allclose(exact, _odds(np.asarray(level, np.float64)), rtol=2e-6, atol=rounding.max())
    there = np.asarray(levels.of_all(jnp.asarray(one, jnp.float32)), np.float64)
    np.testing.assert_allclose(_odds(there), exact, rtol=4e-6, atol=rounding.max())


@pytest.mark.parametrize(("dropped", "ranks"), [(0, 8), (1, 8), (7, 8), (3, 64), (82, 16384), (5000, 10**6)])
def test_the_mean_of_exponentials_is_that_of_renyi(dropped, ranks):
    # T_(n-k:n) is a sum of exponentials of the means θ/n, ..., θ/(k+1) (Rényi 1953).
    harmonic = special.digamma(ranks + 1) - special.digamma(dropped + 1)
    found = Shifted(wait_for_all_but(dropped, ranks, Exponential(2e-5)), 1e-3).mean()
    np.testing.assert_allclose(found, 1e-3 + 2e-5 * harmonic, rtol=1e-6)


@pytest.mark.parametrize("method", ["direct", "grid"])
def test_all_ways_agree(key, method):
    law, count = wait_for_all_but(3, 50, Shifted(Lognormal(1.0, 0.3), 0.5)), 20_000
    exact, other = (
        np.asarray(jax.jit(lambda key, way=way: draw(law, key, count, way))(jax.random.fold_in(key, place)))
        for place, way in enumerate(("exact", method))
    )
    assert_same_law(exact, other)
    times = 0.5 + np.random.default_rng(7).lognormal(0, 0.3, (count, 50))
    assert_same_law(exact, np.sort(times, axis=1)[:, -4])


def test_dropping_one_more_is_never_later(key):
    level = jnp.log(jax.random.uniform(key, (200,), minval=1e-6))
    times = [wait_for_all_but(k, 64, Exponential(1.0)).quantile(level) for k in (0, 1, 2, 10, 63)]
    assert all(bool(jnp.all(later >= sooner)) for later, sooner in itertools.pairwise(times))


def test_without_any_dropped_it_is_the_slowest():
    assert isinstance(wait_for_all_but(0, 64, Exponential(1.0)), Slowest)
    level, law = jnp.log(jnp.array([0.9, 0.5, 1e-9])), Exponential(1.0)
    found = law.quantile(beta_levels(0, 64).of_one(level))
    np.testing.assert_allclose(found, Slowest(law, 64.0).quantile(level), rtol=1e-5)


def test_gradients_are_those_of_a_scale_and_finite_everywhere():
    level = -jnp.logspace(-15, 1.5, 30)

    def quantiles(mean):
        return wait_for_all_but(3, 64, Exponential(mean)).quantile(level)

    found, slope = jax.jit(lambda mean: jax.jvp(quantiles, (mean,), (1.0,)))(2.0)
    np.testing.assert_allclose(slope, found / 2, rtol=1e-5)
    law = wait_for_all_but(3, 64, Exponential(1.0))
    times = jnp.array([0.0, 1e-30, 1.0, 3.0, 1e3, 1e6])
    slopes = jax.jit(jax.vmap(jax.grad(law.log_survival)))(times)
    chex.assert_tree_all_finite(slopes)
    np.testing.assert_array_equal(law.log_survival(jnp.array([0.0, jnp.inf])), [0.0, -jnp.inf])
    np.testing.assert_array_equal(law.quantile(jnp.array([0.0, -jnp.inf])), [0.0, jnp.inf])


@pytest.mark.parametrize(("dropped", "ranks"), [(8, 8), (9, 8), (-1, 8), (1, 2**32)])
def test_as_many_dropped_as_there_are_is_refused(dropped, ranks):
    with pytest.raises(ParameterError, match=f"got {dropped} of {ranks}"):
        wait_for_all_but(dropped, ranks, Exponential(1.0))
