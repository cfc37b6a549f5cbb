"""The lower envelope and its smooth form: bounds, limits, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives import envelope, evaluate, soft_minimum
from mc.collectives.candidates import candidates
from mc.delays.checks import ParameterError
from tests.collectives.test_protocols import CLUSTER, PLAIN

SIZES = np.geomspace(8.0, 1e10, 25)


def test_the_envelope_is_the_fastest_row():
    found = envelope(CLUSTER, "all-reduce", 128, SIZES)
    wanted = [evaluate(CLUSTER, "all-reduce", 128, float(size))[0].time for size in SIZES]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    found = envelope(CLUSTER, "all-reduce", 128, SIZES, ("ring", "tree"), protocol="wide")
    wanted = [
        min(
            evaluate(CLUSTER, "all-reduce", 128, float(size), name, protocol="wide")[0].time
            for name in ("ring", "tree")
        )
        for size in SIZES
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert envelope(CLUSTER, "all-reduce", 1, SIZES).tolist() == [0.0] * len(SIZES)
    assert envelope(PLAIN, "all-reduce", 8, 1e6, "ring").shape == ()


@pytest.mark.parametrize("temperature", [1e-3, 0.05, 0.5])
def test_the_soft_minimum_is_between_its_bounds(temperature):
    rng = np.random.default_rng(5)
    times = rng.lognormal(0.0, 2.0, (7, 1000)) * 1e-5
    soft, hard = np.asarray(soft_minimum(jnp.asarray(times), temperature)), times.min(axis=0)
    assert np.all(soft <= hard * (1 + 1e-5))
    assert np.all(soft >= hard * 7.0**-temperature * (1 - 1e-5))
    # Of equal times the lower bound itself; scaled times scale it.
    equal = soft_minimum(jnp.full((7,), 3e-6), temperature)
    assert float(equal) == pytest.approx(3e-6 * 7.0**-temperature, rel=1e-5)
    np.testing.assert_allclose(soft_minimum(jnp.asarray(times * 100), temperature), soft * 100, rtol=1e-4)


def test_the_soft_envelope_is_between_its_bounds():
    hard = np.asarray(envelope(CLUSTER, "all-reduce", 32, SIZES))
    found = candidates(CLUSTER, "all-reduce", 32)
    count = (len(found.flat) + 1) * max(len(each) for each in found.slots)
    for temperature in (0.01, 0.1):
        # An array, so that one compilation serves all temperatures.
        soft = np.asarray(envelope(CLUSTER, "all-reduce", 32, SIZES, temperature=jnp.asarray(temperature)))
        assert np.all(soft <= hard * (1 + 1e-5))
        assert np.all(soft >= hard * count**-temperature)


def test_derivatives_against_finite_differences():
    with jax.enable_x64(True):
        cluster = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), CLUSTER)

        @jax.jit
        def time(log_size, temperature):
            return jnp.log(
                envelope(cluster, "all-reduce", 32, jnp.exp(log_size), "tree", temperature=temperature)
            )

        slope = jax.jit(jax.grad(time))
        for log_size in np.log([50.0, 3e4, 5e5, 3e6, 1e8]):
            for temperature in (0.02, 0.2):
                h = 1e-6
                wanted = (time(log_size + h, temperature) - time(log_size - h, temperature)) / (2 * h)
                assert float(slope(log_size, temperature)) == pytest.approx(float(wanted), rel=1e-5, abs=1e-7)


def test_the_derivative_turns_smoothly_where_the_winner_changes():
    """Along the size the hard envelope's slope jumps from one line's to the other's; the soft one passes between."""
    sizes = jnp.geomspace(1e4, 1e8, 400)
    slopes = {
        temperature: np.asarray(
            jax.vmap(
                jax.grad(
                    lambda s, t=temperature: envelope(CLUSTER, "all-reduce", 8, s, "ring", temperature=t)
                )
            )(sizes)
        )
        for temperature in (None, 0.3)
    }
    quick, wide = 14 / 8 / 160e9, 14 / 8 / 320e9
    assert set(np.round(slopes[None] / wide, 3)) == {1.0, 2.0}
    assert quick == 2 * wide
    assert np.abs(np.diff(slopes[0.3])).max() < 0.25 * (quick - wide)
    assert np.all(np.isfinite(slopes[0.3]))


def test_the_weights_of_the_soft_minimum_favour_the_fastest():
    weights = np.asarray(jax.grad(lambda t: soft_minimum(t, 0.05))(jnp.asarray([1.0, 1.1, 2.0])))
    assert weights[0] > 0.8
    assert np.all(np.diff(weights) < 0)
    # Euler: a function that scales as its argument is its own sum of weighted arguments.
    assert float(weights @ np.asarray([1.0, 1.1, 2.0])) == pytest.approx(
        float(soft_minimum(jnp.asarray([1.0, 1.1, 2.0]), 0.05)), rel=1e-5
    )


def test_a_temperature_is_above_zero():
    with pytest.raises(ParameterError, match="temperature: expected a number > 0; got 0"):
        soft_minimum(jnp.ones(2), 0.0)
