"""Levenberg–Marquardt against scipy, many starts and many data sets at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from mc.calibration.least_squares import least_squares


def rosenbrock(z, data):
    return jnp.stack([10 * (z[1] - z[0] ** 2), data - z[0]])


@pytest.fixture(scope="module")
def descend():
    return jax.jit(lambda starts, data: least_squares(rosenbrock, starts, data, steps=200, data_axes=0))


def test_finds_the_minimum_from_every_start_for_every_data_set(descend):
    with jax.enable_x64(True):
        starts = jnp.array([[-1.2, 1.0], [3.0, -2.0], [0.0, 0.0]])
        found = descend(starts, jnp.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(found.point, [[1, 1], [1, 1], [2, 4]], rtol=1e-3)
    assert (np.asarray(found.gradient) < 1e-3).all()
    assert (np.asarray(found.steps) < 200).all()
    # JᵀJ at (1, 1): rows (−20, 10) and (−1, 0).
    np.testing.assert_allclose(found.normal[0], [[401, -200], [-200, 100]], rtol=1e-2)


def test_the_same_as_scipy_on_a_curve():
    sizes = np.logspace(1, 8, 15)
    measured = (5e-6 + sizes / 2e9) * np.exp(0.1 * np.sin(np.arange(15)))

    def residuals(z, data):
        return jnp.log((jnp.exp(z[0]) + data * jnp.exp(z[1])) / measured)

    with jax.enable_x64(True):
        start = jnp.array([[-10.0, -20.0]])
        found = jax.jit(lambda z: least_squares(residuals, z, jnp.asarray(sizes), steps=100))(start)
    oracle = optimize.least_squares(
        lambda z: np.log((np.exp(z[0]) + sizes * np.exp(z[1])) / measured), [-10.0, -20.0], xtol=1e-12
    )
    np.testing.assert_allclose(found.point[0], oracle.x, atol=1e-3)
    np.testing.assert_allclose(found.loss[0], oracle.cost, rtol=1e-6)


def test_what_is_not_finite_is_not_taken():
    def residuals(z, data):
        return jnp.where(z > 0.1, (z - data) / jnp.sqrt(jnp.maximum(z, 0)), jnp.nan)

    with jax.enable_x64(True):
        found = least_squares(residuals, jnp.array([[4.0], [-1.0]]), jnp.array(0.5), steps=50)
    assert np.asarray(found.point)[0, 0] == pytest.approx(0.5, abs=1e-3)
    assert np.asarray(found.loss)[1] == np.inf
