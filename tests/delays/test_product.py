"""Products of independent delays, against closed forms and brute force."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, Exponential, Lognormal, Mixture, Product, Scaled, draw, multiply, with_inverse
from tests.stats import assert_same_law

_draw = eqx.filter_jit(draw)


@eqx.filter_jit
def _log_survival(law, t):
    return law.log_survival(t)


@pytest.mark.parametrize("sigmas", [(0.02, 0.1), (0.1, 0.1), (0.3, 1.0)])
def test_lognormals_multiply_to_a_lognormal(sigmas):
    law = Product(Lognormal(1.5, sigmas[0]), Lognormal(2e-3, sigmas[1]))
    z = np.array([-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
    sigma = np.hypot(*sigmas)
    found = np.asarray(_log_survival(law, jnp.asarray(3e-3 * np.exp(sigma * z), jnp.float32)), np.float64)
    np.testing.assert_allclose(found[z >= 0], stats.norm.logsf(z[z >= 0]), rtol=2e-4)
    np.testing.assert_allclose(np.log(-np.expm1(found[z < 0])), stats.norm.logcdf(z[z < 0]), rtol=2e-4)


def test_the_table_and_every_draw_agree(key):
    law = Product(Lognormal(1.0, 0.2), Exponential(1.0))
    rng = np.random.default_rng(2)
    brute = rng.lognormal(0.0, 0.2, 20_000) * rng.exponential(1.0, 20_000)
    table = jax.jit(lambda levels: with_inverse(law).quantile(levels))
    assert_same_law(table(jnp.log(jnp.asarray(rng.random(20_000), jnp.float32))), brute)
    for method in ("exact", "direct", "grid"):
        drawn = _draw(law, key, 20_000, method)
        assert_same_law(drawn, brute)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(drawn, rng.lognormal(0.0, 1.0, 20_000) * rng.exponential(1.0, 20_000))


def test_said_as_simply_as_possible():
    time = Exponential(2.0)
    assert isinstance(multiply(Constant(3.0), time), Scaled)
    assert isinstance(multiply(Lognormal(1.0, 0.1), Constant(3.0)), Scaled)
    halves = multiply(Mixture(jnp.array([0.5, 0.5]), (Constant(1.0), Lognormal(2.0, 0.1))), time)
    assert isinstance(halves, Mixture)
    wide, narrow = Exponential(1.0), Lognormal(1.0, 0.1)
    product = multiply(wide, narrow)
    assert isinstance(product, Product)
    assert product.first is narrow


def test_gradient_of_a_quantile():
    def median(sigma):
        return Product(Lognormal(1.0, sigma), Lognormal(1.0, 0.3)).quantile(jnp.log(0.1))

    # e^{z·√(σ² + 0.3²)}: its derivative is value · z · σ/√(…).
    z, sigma = stats.norm.isf(0.1), 0.2
    whole = np.hypot(sigma, 0.3)
    expected = np.exp(z * whole) * z * sigma / whole
    assert float(jax.jit(jax.grad(median))(sigma)) == pytest.approx(expected, rel=1e-3)
