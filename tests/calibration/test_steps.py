"""The likelihood of the maximum against closed forms, and one rank's law recovered from steps of many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.calibration import CalibrationError
from mc.calibration.descent import descend
from mc.calibration.steps import StepSeries, crps, fit_steps, log_density_of_slowest
from mc.delays import Exponential, Lognormal


@pytest.mark.parametrize("ranks", [1, 64, 10**6])
def test_density_of_the_slowest_is_the_closed_form_in_single_precision(ranks):
    times = np.log(ranks) + np.array([0.1, 1.0, 5.0, 12.0, 30.0])
    found = log_density_of_slowest(Exponential(1.0), jnp.asarray(times, jnp.float32), jnp.float32(ranks))
    exact = np.log(ranks) - times + (ranks - 1) * np.log1p(-np.exp(-times))
    np.testing.assert_allclose(found, exact, rtol=2e-5, atol=2e-5)


def test_density_is_the_derivative_of_scipys():
    times, ranks = np.array([0.9, 1.1, 1.3]), 50
    law = stats.lognorm(0.1)
    exact = np.log(ranks) + (ranks - 1) * law.logcdf(times) + law.logpdf(times)
    with jax.enable_x64(True):
        found = np.asarray(
            log_density_of_slowest(Lognormal(1.0, 0.1), jnp.asarray(times), jnp.float64(ranks))
        )
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_one_ranks_law_from_steps_of_many():
    generator = np.random.default_rng(2)
    series = []
    for ranks in (8, 512):
        level = generator.uniform(size=400) ** (1 / ranks)
        series.append(StepSeries(ranks, 0.2 * np.exp(0.05 * stats.norm.ppf(level))))
    fit = fit_steps(series, "lognormal", starts=3)
    assert fit.names == ("median", "sigma")
    np.testing.assert_allclose(fit.values, [0.2, 0.05], rtol=0.06)
    assert (fit.low < fit.values).all()
    assert (fit.values < fit.high).all()
    assert fit.gradient < 1e-2
    # A forecast of 4,096 ranks, whom nobody measured.
    exact = 0.2 * np.exp(0.05 * stats.norm.ppf(0.99 ** (1 / 4096)))
    assert fit.quantile(4096, 0.99) == pytest.approx(exact, rel=0.02)
    exact_likelihood = sum(
        np.sum(
            np.log(each.ranks)
            + (each.ranks - 1) * stats.lognorm(fit.values[1], scale=fit.values[0]).logcdf(each.times)
            + stats.lognorm(fit.values[1], scale=fit.values[0]).logpdf(each.times)
        )
        for each in series
    )
    assert fit.log_likelihood == pytest.approx(exact_likelihood, rel=1e-6)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ([], "expected 10 step times or more; got 0"),
        ([StepSeries(8, np.full(50, 0.2))], "expected step times that vary; got 0.2 s for all 50"),
        ([StepSeries(8, np.array([0.1] * 20 + [0.0]))], "expected step times above 0; got 0"),
        ([StepSeries(0, np.linspace(1, 2, 20))], "expected at least one rank; got 0"),
    ],
)
def test_bad_series(series, message):
    with pytest.raises(CalibrationError, match=message):
        fit_steps(series)


def test_an_unknown_family():
    with pytest.raises(
        CalibrationError, match="expected a family of lognormal, exponential, weibull; got gama"
    ):
        fit_steps([StepSeries(8, np.linspace(1, 2, 20))], "gama")


def test_descent_finds_the_bottom_of_a_quadratic():
    matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    with jax.enable_x64(True):
        found = jax.jit(
            lambda z: descend(
                lambda x, c: (x - c) @ matrix @ (x - c) / 2, z, jnp.array([1.0, -2.0]), first=20, second=15
            )
        )(jnp.zeros((2, 2)))
    np.testing.assert_allclose(found.point, [[1, -2]] * 2, atol=1e-6)
    np.testing.assert_allclose(found.hessian[0], matrix, rtol=1e-9)


def test_crps_of_an_exponential():
    # y − 2·(1 − e^(−y)) + 1/2.
    draws = stats.expon.ppf((np.arange(20_000) + 0.5) / 20_000)
    for y in (0.0, 0.7, 3.0):
        assert crps(draws, np.array([y])) == pytest.approx(y - 2 * (1 - np.exp(-y)) + 0.5, abs=1e-3)
