"""Sums of copies of a delay, against closed forms and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import (
    Constant,
    Exponential,
    Gamma,
    Lognormal,
    ParameterError,
    Scaled,
    Shifted,
    Slowest,
    add,
    draw,
    total,
    with_pauses,
)
from tests.stats import assert_same_law


@pytest.mark.parametrize(
    ("law", "oracle"),
    [
        (Exponential(2.0), stats.gamma(6, scale=2)),
        (Gamma(2.5, 1.0), stats.gamma(15)),
        (Shifted(Scaled(Exponential(1.0), 3.0), 0.5), stats.gamma(6, scale=3, loc=3)),
        # The table, where the sum is known too.
        (add(Exponential(1.0), Exponential(1.0)), stats.gamma(12)),
    ],
)
def test_sums_are_gamma(law, oracle):
    # Linear between knots in 64 bits: probabilities to 10⁻³ of themselves in both tails.
    t = jnp.asarray(oracle.ppf([1e-6, 0.01, 0.5, 0.99]).tolist() + oracle.isf([1e-6, 1e-9]).tolist())
    found = total(law, 6)
    np.testing.assert_allclose(found.log_survival(t), oracle.logsf(t), rtol=1e-3)
    np.testing.assert_allclose(found.quantile(jnp.asarray(oracle.logsf(t), jnp.float32)), t, rtol=1e-3)


def test_rare_pauses_add_up_by_their_number():
    rank, count, often, pause = Exponential(1.0), 8, 0.02, 30.0
    law = total(with_pauses(rank, often, add(rank, Constant(pause))), count)
    number = np.arange(count + 1)
    t = np.array([2.0, 8.0, 25.0, 33.0, 60.0, 70.0, 100.0])
    survival = stats.gamma(count).sf(t[:, None] - pause * number) @ stats.binom(count, often).pmf(number)
    np.testing.assert_allclose(law.log_survival(jnp.asarray(t, jnp.float32)), np.log(survival), rtol=1e-3)


def test_slowest_of_sums_as_drawn_one_by_one(key):
    law, count = Slowest(total(Lognormal(1.0, 0.5), 4), 20), 20_000
    found = [jax.jit(lambda key, way=way: draw(law, key, count, way))(key) for way in ("exact", "direct")]
    brute = np.random.default_rng(3).lognormal(0, 0.5, (count, 20, 4)).sum(axis=2).max(axis=1)
    for each in found:
        assert_same_law(each, brute)


def test_no_copies_are_refused():
    with pytest.raises(ParameterError, match="expected one delay or more; got 0"):
        total(Exponential(1.0), 0)
