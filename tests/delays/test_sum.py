"""Sums against scipy's quadrature: laws of different widths, in both tails, and the grid's convolution."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from mc.delays import Exponential, Lognormal, Shifted, Sum, Weibull, add
from mc.delays.grid import on_grid
from tests.delays import oracle


def _lognormal(median, sigma):
    return Lognormal(median, sigma), stats.lognorm(sigma, scale=median)


def _exponential(mean):
    return Exponential(mean), stats.expon(scale=mean)


def _weibull(scale, shape):
    return Weibull(scale, shape), stats.weibull_min(shape, scale=scale)


_PAIRS = {
    "narrow and wide": (_lognormal(1e-4, 0.02), _exponential(1e-4)),
    "normal-like": (_lognormal(1e-4, 0.05), _weibull(1e-4, 10.0)),
    "much narrower": (_exponential(1e-8), _lognormal(1e-4, 0.3)),
}


def _tails(x, y, t):
    """P(X + Y > t) and P(X + Y ≤ t): one integral over the quantiles of X each, by scipy."""

    def over(function):
        # Split where X lies, and where t − X crosses the body of Y.
        marks = np.concatenate(
            [x.isf([1 - 1e-9, 0.9, 0.1, 1e-9, 1e-20]), t - y.isf([1 - 1e-9, 0.9, 0.1, 1e-9])]
        )
        ends = np.unique(np.clip(np.concatenate([[0.0, t], marks]), 0.0, t))
        return sum(
            integrate.quad(lambda u: x.pdf(u) * function(t - u), a, b, epsabs=0, epsrel=1e-10, limit=200)[0]
            for a, b in itertools.pairwise(ends)
        )

    return x.sf(t) + over(y.sf), over(y.cdf)


_LOG_SURVIVAL = eqx.filter_jit(lambda law, t: law.log_survival(t))


@pytest.mark.parametrize("name", _PAIRS)
def test_against_quadrature(name):
    (first, x), (second, y) = _PAIRS[name]
    law = add(first, second)
    centre, spread = x.mean() + y.mean(), np.hypot(x.std(), y.std())
    t = np.float32(centre + spread * np.array([-2.0, -0.5, 0.3, 2.0, 5.0]))
    t = t[t > 0]
    tails = np.array([_tails(x, y, float(time)) for time in t])
    expected = np.log(tails[:, 1]) - np.log(tails[:, 0])
    odds = oracle.log_odds(_LOG_SURVIVAL(law, jnp.asarray(t)))
    # 10⁻⁵ in log-odds, or what an error of 10⁻⁶ in time amounts to.
    slope = np.abs(np.gradient(expected, t)) * t
    np.testing.assert_array_less(
        np.abs(odds - expected), 1e-5 * np.maximum(1, np.abs(expected)) + 1e-6 * slope
    )


def test_a_shift_of_a_term_shifts_the_sum():
    t = jnp.linspace(1e-4, 3e-4, 20)
    plain = Sum(Exponential(1e-5), Lognormal(1e-4, 0.2))
    late = Sum(Shifted(Exponential(1e-5), 1e-4), Lognormal(1e-4, 0.2))
    np.testing.assert_allclose(_LOG_SURVIVAL(late, t + 1e-4), _LOG_SURVIVAL(plain, t), rtol=1e-4)


def test_add_puts_the_narrower_first():
    narrow, wide = Lognormal(1e-4, 0.01), Exponential(1e-4)
    for law in (add(narrow, wide), add(wide, narrow)):
        assert isinstance(law.first, Lognormal)


def test_convolution_by_fft():
    """A second route to the same sum: above 10⁻⁵ within 10⁻³."""
    law = Sum(Exponential(1e-5), Lognormal(1e-4, 0.1))
    t = jnp.asarray(np.linspace(9e-5, 1.8e-4, 12), jnp.float32)
    by_grid, by_quadrature = _LOG_SURVIVAL(on_grid(law), t), _LOG_SURVIVAL(law, t)
    np.testing.assert_allclose(np.expm1(by_grid), np.expm1(by_quadrature), rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(by_grid, by_quadrature, rtol=2e-2)
