"""Derivatives in every parameter, of quantiles and of log S: right in 64 bits, finite in 32 bits everywhere."""

import functools

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import integrate, stats

from mc.delays import (
    Constant,
    Exponential,
    Gamma,
    GeneralisedPareto,
    Lognormal,
    Mixture,
    Scaled,
    Shifted,
    Slowest,
    Tabulated,
    Weibull,
    draw,
)
from mc.delays.lognormal import log_normal_survival
from tests.delays import oracle
from tests.delays.laws import FAMILIES, LAWS, prepared
from tests.stats import assert_mean

# Compile time is most of this file, and unoptimised code computes the same.
_QUICK = {"xla_backend_optimization_level": 0}
# Left out: what is like another one but takes long to compile, and the shape at which gamma changes its formula, where
# a difference is none.
COMPARED = [
    name for name in LAWS if name not in ("sum of three", "nested shared fate", "different ranks", "gamma 16")
]


@functools.partial(jax.jit, compiler_options=_QUICK)
def _both_ways(law, levels, times):
    """Quantiles at `levels` and log S at `times`: values, and changes by the derivative and by central differences."""
    # Parameters are the small leaves; the knots of an empirical law are not compared one by one.
    chosen, rest = eqx.partition(law, jax.tree.map(lambda leaf: leaf.size <= 8, law))
    theta, unravel = ravel_pytree(chosen)
    steps = jnp.where(theta == 0, 1e-9, 1e-6 * jnp.abs(theta))

    def values(theta):
        law = eqx.combine(unravel(theta), rest)
        return jnp.concatenate([law.quantile(levels), law.log_survival(times)])

    def difference(step):
        return (values(theta + step) - values(theta - step)) / 2

    jacobian = jax.jacfwd(values)(theta)
    return values(theta), jacobian.T * steps[:, None], jax.lax.map(difference, jnp.diag(steps))


@pytest.mark.parametrize("name", COMPARED)
def test_equal_to_finite_differences(name):
    """At levels in both tails and at the same times, against central differences in float64."""
    odds = np.array([-10.0, -3.0, 0.1, 4.0, 20.0])
    times = LAWS[name].oracle.quantile(odds) if LAWS[name].smooth else np.array([2.9e-4])
    with jax.enable_x64(True):
        levels = jnp.asarray(-np.logaddexp(odds, 0.0))
        value, found, expected = map(np.asarray, _both_ways(LAWS[name].make(), levels, jnp.asarray(times)))
    chex.assert_tree_all_finite(found)
    finite = np.isfinite(value)  # log S is −∞ behind a last atom
    error, size = np.abs(found - expected)[:, finite], np.abs(expected)[:, finite]
    assert np.all(error <= 1e-4 * size + 1e-11 * np.abs(value[finite])), f"{found} against {expected}"
    # Every parameter matters somewhere, but for the ends of a law without slope and for classes that are never last.
    if LAWS[name].smooth and name != "classes of ranks":
        assert np.all(np.abs(found).max(axis=1) > 0)


# Levels down to what 64 bits can draw, and times before, at, in and far beyond the support.
_LEVELS = jnp.array([-1e-19, -1e-9, -1e-3, -0.7, -5.0, -20.0, -44.0])
_TIMES = jnp.array([0.0, 1e-37, 1e-12, 1e-6, 1e-5, 3e-5, 1e-4, 1.0001e-4, 3e-4, 1e-3, 1.0, 1e6])

EXTREMES = {
    "exponential, tiny": lambda: Exponential(1e-12),
    "exponential, huge": lambda: Exponential(1e6),
    "exponential, 10^9 ranks": lambda: Slowest(Exponential(1e-5), 1e9),
    "no ranks": lambda: Slowest(Exponential(1e-5), 0.0),
    "lognormal, almost constant": lambda: Lognormal(1e-4, 1e-5),
    "lognormal, very wide": lambda: Lognormal(1e-4, 6.0),
    "weibull, steep": lambda: Weibull(1e-4, 60.0),
    "weibull, flat": lambda: Weibull(1e-4, 0.3),
    "pareto, infinite mean": lambda: GeneralisedPareto(1e-5, 1.5),
    "pareto, short": lambda: GeneralisedPareto(1e-5, -5.0),
    "pareto, nearly exponential": lambda: GeneralisedPareto(1e-5, 1e-7),
    "gamma, small": lambda: Gamma(0.1, 1e-4),
    "gamma, large": lambda: Gamma(1e6, 1e-10),
    "gamma, at the change": lambda: Gamma(16.0, 1e-5),
    "no shift": lambda: Shifted(Lognormal(1e-4, 0.1), 0.0),
    "constant 0": lambda: Constant(0.0),
    "impossible state": lambda: Mixture(
        jnp.array([1.0, 0.0]), (Exponential(1e-5), Scaled(Exponential(1e-5), 4.0))
    ),
}


@functools.partial(jax.jit, compiler_options=_QUICK)
def _gradients(law):
    """Under jit, vmap and reverse mode: one gradient per level and per time, in every parameter and in the argument."""

    def of_quantile(level):
        return jax.grad(lambda law, level: law.quantile(level), argnums=(0, 1))(law, level)

    def of_log_survival(t):
        # −∞ has no derivative; what must not happen is that it poisons a parameter.
        finite = lambda law, t: jnp.maximum(law.log_survival(t), -1e30)  # noqa: E731
        return jax.grad(finite, argnums=(0, 1))(law, t)

    return law.quantile(_LEVELS), jax.vmap(of_quantile)(_LEVELS), jax.vmap(of_log_survival)(_TIMES)


@pytest.mark.parametrize("name", [*FAMILIES, "rare pauses", "different ranks", "erlang", *EXTREMES])
def test_finite_everywhere_in_float32(name):
    law = EXTREMES[name]() if name in EXTREMES else LAWS[name].make()
    value, *gradients = _gradients(law)
    chex.assert_tree_all_finite((value, gradients))


@pytest.mark.parametrize("name", ["gamma 3", "rare pauses", "hypoexponential"])
def test_a_table_has_the_derivative_of_its_law(name):
    """In float32, through the table, against implicit differentiation of the oracle in float64."""
    levels = np.log(np.array([0.999, 0.5, 0.1, 1e-3, 1e-9], np.float32))
    law = prepared(name)
    assert any(isinstance(part, Tabulated) for part in jax.tree.leaves(law, is_leaf=_is_table))
    slopes = jax.jit(lambda law, at: jax.jvp(law.quantile, (at,), (jnp.ones(5),)), compiler_options=_QUICK)
    times, slope = slopes(law, jnp.asarray(levels))
    t = np.asarray(times, np.float64)
    expected = np.exp(levels - LAWS[name].oracle.log_density(t))  # dt/d log S = −S/f
    np.testing.assert_allclose(slope, -expected, rtol=1e-3)


def _is_table(part):
    return isinstance(part, Tabulated)


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_pathwise_gradient_of_the_slowest_exponential(method, key):
    """d/dθ of the mean θ·H_n is H_n, with 64 ranks."""
    ranks, count = 64, 20_000
    sample = jax.jit(lambda mean: draw(Slowest(Exponential(mean), ranks), key, count, method))
    _, derivative = jax.jvp(sample, (jnp.float32(2e-5),), (jnp.float32(1.0),))
    assert_mean(derivative, float(np.sum(1 / np.arange(1, ranks + 1))))


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_pathwise_gradient_of_the_slowest_lognormal(method, key):
    """E max = ∫ e^{σz}·n φ(z) Φ(z)^{n−1} dz, differentiated under the integral, with 1,024 ranks."""
    ranks, sigma, count = 1024, 0.5, 20_000

    def moment(weight):
        def integrand(z):
            return (
                weight(z)
                * np.exp(sigma * z + stats.norm.logpdf(z) + (ranks - 1) * stats.norm.logcdf(z))
                * ranks
            )

        return integrate.quad(integrand, 0, 12, epsabs=0, epsrel=1e-10, limit=200)[0]

    sample = jax.jit(lambda median, sigma: draw(Slowest(Lognormal(median, sigma), ranks), key, count, method))
    at = jnp.float32(1.0), jnp.float32(sigma)
    for direction, expected in (((1.0, 0.0), moment(lambda z: 1.0)), ((0.0, 1.0), moment(lambda z: z))):
        _, derivative = jax.jvp(sample, at, tuple(map(jnp.float32, direction)))
        assert_mean(derivative, expected)


def test_gradient_of_a_vmapped_loss():
    """A batch of laws, one loss, reverse mode."""
    levels = jnp.log(jnp.array([0.5, 1e-3, 1e-9]))

    def loss(medians, sigmas):
        laws = jax.vmap(Lognormal)(medians, sigmas)
        return jnp.sum(jax.vmap(lambda law: Slowest(law, 100.0).quantile(levels))(laws))

    medians, sigmas = jnp.array([1.0, 2.0]), jnp.array([0.1, 0.3])
    found = jax.jit(jax.grad(loss, argnums=(0, 1)))(medians, sigmas)
    odds = oracle.log_odds(levels)
    z = oracle.slowest(oracle.from_scipy(stats.lognorm(1.0)), 100.0).quantile(odds)
    z = np.log(z)
    np.testing.assert_allclose(found[0], [np.sum(np.exp(s * z)) for s in (0.1, 0.3)], rtol=1e-5)
    np.testing.assert_allclose(
        found[1], [m * np.sum(z * np.exp(s * z)) for m, s in ((1.0, 0.1), (2.0, 0.3))], rtol=1e-5
    )


def test_second_derivatives_of_a_normal_tail():
    """(log Q)'' = z h - h², with the hazard h = φ/Q, on both sides of where the series takes over."""
    z = np.array([5.0, 25.9, 26.1, 28.0, 31.0])
    with jax.enable_x64(True):
        found = jax.vmap(jax.grad(jax.grad(log_normal_survival)))(jnp.asarray(z))
        values = np.asarray(log_normal_survival(jnp.asarray(z)))
    hazard = np.exp(stats.norm.logpdf(z) - stats.norm.logsf(z))
    np.testing.assert_allclose(values, stats.norm.logsf(z), rtol=1e-14)
    # What is left of two numbers near z².
    np.testing.assert_allclose(found, z * hazard - hazard**2, atol=1e-9)
