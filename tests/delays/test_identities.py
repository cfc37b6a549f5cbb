"""Theorems about the slowest: percentiles, the Gumbel limit, associativity, dominance, exchangeability."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mc.delays import Exponential, Gamma, Lognormal, Mixture, Slowest, SlowestOf, add, draw
from tests.delays.laws import FAMILIES, LAWS
from tests.stats import assert_law, assert_same_law

LEVELS = np.log(np.array([0.999999, 0.99, 0.5, 0.01, 1e-6, 1e-12])).astype(np.float32)
_QUANTILE = eqx.filter_jit(lambda law, levels: law.quantile(levels))
_LOG_SURVIVAL = eqx.filter_jit(lambda law, t: law.log_survival(t))


@pytest.mark.parametrize(("ranks", "percentile"), [(8, 91.70), (1000, 99.931)])
def test_the_median_slowest_rank_is_this_percentile_of_one(ranks, percentile):
    for law in (Exponential(1e-5), Lognormal(1e-4, 0.3)):
        median = Slowest(law, ranks).quantile(jnp.log(0.5))
        of_one = 100 * -np.expm1(float(law.log_survival(median)))
        assert of_one == pytest.approx(100 * 0.5 ** (1 / ranks), abs=1e-4)
        assert of_one == pytest.approx(percentile, abs=0.005)


def test_gumbel_limit(key):
    """(T_max − θ log n)/θ has the distribution function exp(−e^{−x}); at n = 10⁶ within 10⁻⁶ of it."""
    theta, ranks = 2e-5, 1e6
    sample = draw(Slowest(Exponential(theta), ranks), key, 50_000)
    assert_law((np.asarray(sample, np.float64) - theta * np.log(ranks)) / theta, stats.gumbel_r.cdf)


@pytest.mark.parametrize(
    "name", [name for name in FAMILIES if not name.startswith(("gamma", "discrete", "constant"))]
)
def test_slowest_of_slowest(name):
    law = FAMILIES[name].make()
    nested, flat = Slowest(Slowest(law, 40.0), 25.0), Slowest(law, 1000.0)
    times = _QUANTILE(flat, LEVELS)
    np.testing.assert_allclose(_QUANTILE(nested, LEVELS), times, rtol=2e-6)
    np.testing.assert_allclose(_LOG_SURVIVAL(nested, times), _LOG_SURVIVAL(flat, times), rtol=2e-5)


@functools.partial(jax.jit, static_argnames="method")
def _slowest(ranks, method):
    key = jax.random.key(20261202)
    return jnp.stack(
        [draw(Slowest(law, ranks), key, 64, method) for law in (Exponential(1e-5), Lognormal(1e-4, 0.4))]
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ranks=st.integers(0, 3000), more=st.integers(0, 3000))
@pytest.mark.parametrize("method", ["exact", "direct"])
def test_more_ranks_never_shorten_a_draw(method, ranks, more):
    """Pathwise, with the same key: no tolerance but the last bits of a quantile."""
    few, many = _slowest(jnp.float32(ranks), method), _slowest(jnp.float32(ranks + more), method)
    assert np.all(np.asarray(many) >= np.asarray(few) * (1 - 1e-6))
    if method == "direct":
        assert np.all(np.asarray(many) >= np.asarray(few))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.permutations(range(5)))
def test_permuting_different_ranks_changes_nothing(order):
    law = LAWS["different ranks"].make()
    permuted = SlowestOf(jax.tree.map(lambda leaf: leaf[np.array(order)], law.delays))
    times = jnp.linspace(8e-5, 3e-4, 50)
    np.testing.assert_allclose(_LOG_SURVIVAL(permuted, times), _LOG_SURVIVAL(law, times), rtol=1e-5)


def test_permuting_different_ranks_draws_the_same_law(key):
    law = LAWS["different ranks"].make()
    permuted = SlowestOf(jax.tree.map(lambda leaf: leaf[np.array([3, 1, 4, 0, 2])], law.delays))
    first, second = jax.random.split(key)
    assert_same_law(draw(law, first, 20_000, "direct"), draw(permuted, second, 20_000, "direct"))


def test_equal_ranks_may_be_written_as_different_ones():
    equal = SlowestOf(jax.vmap(Lognormal)(jnp.full(300, 1e-4), jnp.full(300, 0.3)))
    identical = Slowest(Lognormal(1e-4, 0.3), 300.0)
    times = _QUANTILE(identical, LEVELS)
    np.testing.assert_allclose(_LOG_SURVIVAL(equal, times), _LOG_SURVIVAL(identical, times), rtol=2e-5)
    np.testing.assert_allclose(_QUANTILE(equal, LEVELS), times, rtol=1e-5)


def test_a_mixture_of_one_is_that_one():
    law = Lognormal(1e-4, 0.3)
    one = Mixture(jnp.ones(1), (law,))
    times = _QUANTILE(law, LEVELS)
    np.testing.assert_allclose(_QUANTILE(one, LEVELS), times, rtol=2e-6)
    np.testing.assert_allclose(one.log_survival(times), law.log_survival(times), rtol=1e-6)


def test_a_mixture_of_the_same_is_that_one():
    law = Lognormal(1e-4, 0.3)
    same = Mixture(jnp.array([0.2, 0.5, 0.3]), (law, law, law))
    times = _QUANTILE(law, LEVELS)
    np.testing.assert_allclose(same.log_survival(times), law.log_survival(times), rtol=1e-5)


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_nobody_to_wait_for(method, key):
    law = Slowest(Exponential(1e-5), 0)
    assert np.all(np.asarray(draw(law, key, 100, method)) == 0)
    np.testing.assert_array_equal(law.log_survival(jnp.array([0.0, 1e-9])), [-np.inf, -np.inf])
    np.testing.assert_array_equal(law.quantile(jnp.array([-1e-9, -40.0])), [0.0, 0.0])


@pytest.mark.parametrize("name", FAMILIES)
def test_one_rank_waits_for_itself(name):
    law = FAMILIES[name].make()
    levels = (
        LEVELS[:2] if name == "discrete" else LEVELS
    )  # a level within a bit of a jump may fall on either side
    np.testing.assert_allclose(_QUANTILE(Slowest(law, 1), levels), _QUANTILE(law, levels), rtol=1e-5)


def test_a_sum_does_not_depend_on_the_order():
    """`add` integrates over the narrower term whichever way they are given."""
    slow, fast = Lognormal(1e-4, 0.3), Exponential(1e-6)
    times = jnp.linspace(5e-5, 5e-4, 20)
    np.testing.assert_array_equal(
        _LOG_SURVIVAL(add(slow, fast), times), _LOG_SURVIVAL(add(fast, slow), times)
    )


def test_gamma_and_lognormal_from_mean_and_variation():
    for law in (Gamma.from_mean_cv(2e-4, 0.25), Lognormal.from_mean_cv(2e-4, 0.25)):
        draws = np.asarray(_QUANTILE(law, jnp.log((jnp.arange(4000) + 0.5) / 4000)), np.float64)
        assert draws.mean() == pytest.approx(2e-4, rel=1e-3)
        assert draws.std() / draws.mean() == pytest.approx(0.25, rel=5e-3)
