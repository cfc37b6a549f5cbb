"""Laws of simulated values: what was put in comes out, atoms at the ends included."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.delays import Constant, draw
from mc.delays.checks import ParameterError
from mc.training.sampled import Sampled, law_of_samples
from tests.stats import assert_fraction, assert_same_law


def test_draws_follow_the_samples(key):
    rng = np.random.default_rng(5)
    samples = rng.beta(2.0, 3.0, 20_000)
    law = law_of_samples(samples, 0.0, 1.0)
    drawn = np.asarray(draw(law, key, 20_000))
    assert_same_law(drawn, rng.beta(2.0, 3.0, 20_000))
    assert drawn.min() >= 0
    assert drawn.max() <= 1


def test_atoms_at_both_ends(key):
    samples = np.concatenate(
        [np.full(3_000, 0.25), np.random.default_rng(5).uniform(0.25, 1, 4_000), np.ones(3_000)]
    )
    drawn = np.asarray(draw(law_of_samples(samples, 0.25, 1.0), key, 20_000))
    assert_fraction(int((drawn <= 0.25 * (1 + 1e-5)).sum()), drawn.size, 0.3)
    assert_fraction(int((drawn >= 1 - 1e-5).sum()), drawn.size, 0.3)
    assert drawn.min() == 0.25
    assert drawn.max() == 1


def test_survival_and_quantile_are_inverse():
    law = law_of_samples(np.random.default_rng(5).lognormal(0, 0.3, 5_000), 0.01, 40.0)
    levels = jnp.log(jnp.array([1 - 1e-3, 0.9, 0.5, 0.1, 1e-3, 1e-9]))
    np.testing.assert_allclose(law.log_survival(law.quantile(levels)), levels, rtol=2e-3, atol=1e-6)
    assert float(law.log_survival(jnp.array(0.0))) == 0
    assert float(law.log_survival(jnp.array(40.0))) == -jnp.inf


def test_gradients_are_finite():
    law = law_of_samples([0.5, 0.7, 0.7, 1.0], 0.1, 1.0)
    assert isinstance(law, Sampled)
    slopes = jax.vmap(jax.grad(law.quantile))(jnp.log(jnp.array([1e-9, 0.3, 0.5, 0.9, 1 - 1e-6])))
    chex.assert_tree_all_finite(slopes)


def test_samples_that_are_all_alike():
    law = law_of_samples(np.full(7, 0.3), 0.0, 1.0)
    assert isinstance(law, Constant)
    assert float(law.value) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("samples", "got"), [([], "none"), ([0.5, 1.5], "0.5 to 1.5"), ([-0.1], "-0.1 to -0.1")]
)
def test_samples_beyond_the_bounds(samples, got):
    with pytest.raises(ParameterError, match=f"expected values from 0 to 1; got {got}"):
        law_of_samples(samples, 0.0, 1.0)
