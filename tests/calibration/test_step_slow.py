"""Slow chips in step times: the likelihood against a sum over every number of them, and figures that steps were drawn with."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

from mc.calibration import StepRun, fit_runs, step_parameters
from mc.calibration.step_coordinates import StepCoordinates
from mc.calibration.step_counts import Rows, counts_of
from mc.calibration.step_descent import Descended, apart, curvature_of
from mc.calibration.step_valley import valley_along
from mc.config import load_experiment

COMPUTE, LATENCY, SIGMA, FRACTION, SLOWDOWN = 0.02, 1e-4, 0.05, 0.06, 1.3
EXPERIMENT = """
name: small
cluster:
  name: flat
  chip: {peak: {}}
  tiers: [{name: net, fan_out: 64, link: {bandwidth: 10 GB/s, duplex: each, latency: 100 us}}]
  noise: {spread: {family: lognormal, median: 1, sigma: 0.05}, slow_chips: {fraction: 0.02, slowdown: 1.1}}
model: {name: m, compute: {time: 25 ms}, exchange: {collective: all-reduce, size: 1 B}}
plan: {ranks: 8, algorithm: ring}
"""
FREE = ("model.compute.time", "cluster.noise.slow_chips.fraction", "cluster.noise.slow_chips.slowdown")


def drawn(ranks, count, generator):
    """Step times by numpy alone; some chips stay slow for the whole run."""
    factor = np.where(generator.random(ranks) < FRACTION, SLOWDOWN, 1.0)
    rank = COMPUTE * np.exp(SIGMA * generator.normal(size=(count, ranks)))
    return StepRun(ranks, (factor * rank).max(axis=1) + 2 * (ranks - 1) * LATENCY)


def brute_force(runs, time, fraction, slowdown):
    """Log likelihood, every number of slow chips one after the other."""
    total = 0.0
    for run in runs:
        at = run.times - 2 * (run.ranks - 1) * LATENCY
        law = stats.lognorm(SIGMA, scale=time)
        each = []
        for k in range(run.ranks + 1):
            with np.errstate(divide="ignore", invalid="ignore"):
                cdf = special.xlogy(run.ranks - k, law.cdf(at)) + special.xlogy(k, law.cdf(at / slowdown))
                rate = (run.ranks - k) * law.pdf(at) / law.cdf(at)
                rate += k * np.nan_to_num(law.pdf(at / slowdown) / slowdown / law.cdf(at / slowdown))
                each.append(np.sum(cdf + np.log(rate)))
        total += special.logsumexp(
            np.array(each) + stats.binom(run.ranks, fraction).logpmf(range(run.ranks + 1))
        )
    return total


def test_figures_that_steps_were_drawn_with_are_found(tmp_path):
    (tmp_path / "job.yaml").write_text(EXPERIMENT)
    config = load_experiment(tmp_path / "job.yaml")
    generator = np.random.default_rng(7)
    runs = [drawn(ranks, 25, generator) for ranks in (4, 8, 16) for _ in range(8)]
    parameters = step_parameters(config)
    kept = [each for each in parameters.items if each.name in FREE]
    fit = fit_runs(config, runs, type(parameters)(tuple(kept)), starts=1)
    assert fit.convergence.outcome == "flat"
    low, found, high = fit.interval(0.9999).T
    truth = np.array([COMPUTE, FRACTION, SLOWDOWN])
    assert (low < truth).all()
    assert (truth < high).all()
    # And a fit is not content with anything.
    assert (high - low)[[0, 2]] == pytest.approx(0, abs=0.08)
    # Some runs have no slow chip, and what that would mean is said where all have one.
    assert fit.healthy > 0.9
    assert "Every run has a slow chip" not in " ".join(fit.sentences())
    assert "Every run has a slow chip" in " ".join(replace(fit, healthy=0.01).sentences())
    assert fit.log_likelihood == pytest.approx(brute_force(runs, *found), abs=0.02)
    assert fit.log_likelihood - brute_force(runs, found[0], found[1], found[2] + 0.02) > 1


def test_the_sum_over_numbers_of_slow_chips():
    generator = np.random.default_rng(1)
    ranks, of_run = (5, 3000, 3000), np.array([0, 0, 1, 1, 1, 2])
    cdf = -generator.exponential(size=(2, 6, 1)) / np.array(ranks)[of_run][:, None]
    hazard = generator.normal(size=(2, 6, 1))
    with jax.enable_x64(True):
        rows = [jnp.asarray(each) for each in (cdf, hazard, np.zeros((6, 1)))]
        summed = jax.jit(lambda fraction: counts_of(Rows(*rows, of_run), ranks, fraction).chances)
        for fraction in (0.002, 0.4):
            found = jax.nn.logsumexp(summed(fraction), axis=1)
            for place, n in enumerate(ranks):
                own = of_run == place
                k = np.arange(n + 1.0)[:, None]
                with np.errstate(divide="ignore"):
                    rate = np.logaddexp(np.log(n - k) + hazard[0, own, 0], np.log(k) + hazard[1, own, 0])
                each = (n - k) * cdf[0, own, 0] + k * cdf[1, own, 0] + rate
                binomial = stats.binom(n, fraction).logpmf(k[:, 0])
                exact = special.logsumexp(binomial + each.sum(axis=1))
                assert found[place] == pytest.approx(exact, abs=1e-6)


def test_coordinates_of_a_descent_and_back(tmp_path):
    (tmp_path / "job.yaml").write_text(EXPERIMENT)
    parameters = step_parameters(load_experiment(tmp_path / "job.yaml"))
    own = StepCoordinates(parameters)
    with jax.enable_x64(True):
        z = jnp.asarray(np.random.default_rng(3).normal(size=(4, len(parameters))))
        np.testing.assert_allclose(own.back(own.of(z)), z, atol=1e-12)
        values = dict(zip([each.name for each in parameters.items], parameters.values(z).T, strict=True))
        along = np.asarray(own.of(z))
    # What is replaced is the logarithm of the product.
    x = np.log(0.025) + 0.7 * along[:, 0]
    np.testing.assert_allclose(np.exp(x), values[FREE[0]] * values[FREE[2]], rtol=1e-9)


def test_a_valley_with_two_bottoms_against_its_integral():
    """Along s two wells, and beside it a normal law whose mean bends and whose width grows: marginals are integrals over s."""

    def loss(at):
        s, y = at
        wells, slope = 0.15 * (s**2 - 2.5) ** 2 + 0.2 * s, 0.6 * s * (s**2 - 2.5) + 0.2
        width = 0.1 * np.exp(0.3 * s)
        off = (y - 0.5 * s**2) / width
        return wells + off**2 / 2, np.array([slope - off * (s / width + 0.3 * off), off / width])

    best = optimize.minimize(loss, [-1.6, 1.28], jac=True, options={"gtol": 1e-9}).x
    valley = valley_along(loss, best, np.linalg.inv(curvature_of(loss, best)), 0)
    s = np.linspace(-5, 5, 20_001)
    density = np.exp(-0.15 * (s**2 - 2.5) ** 2 - 0.2 * s) * np.exp(0.3 * s)
    exact = np.interp([0.05, 0.25, 0.75, 0.95], np.cumsum(density) / density.sum(), s)
    drawn = valley.drawn(40_000)
    for level, place in zip([0.05, 0.25, 0.75, 0.95], exact, strict=True):
        # As far as steps of half a standard deviation can tell.
        assert np.mean(drawn[:, 0] < place) == pytest.approx(level, abs=0.02)
    beside = (drawn[:, 1] - 0.5 * drawn[:, 0] ** 2) / (0.1 * np.exp(0.3 * drawn[:, 0]))
    assert (beside.mean(), beside.std()) == pytest.approx((0, 1), abs=0.2)
    # The other bottom is on the way, and a place below the way is none of it.
    other = optimize.minimize(loss, [1.5, 1.1], jac=True).x
    assert valley.holds(other, loss(other)[0])
    assert not valley.holds(other, loss(other)[0] - 1)


def test_a_valley_of_one_figure_alone():
    valley = valley_along(lambda at: (float(at[0] ** 2) / 2, at.copy()), np.zeros(1), np.eye(1), 0)
    drawn = valley.drawn(20_000)[:, 0]
    assert (drawn.mean(), drawn.std()) == pytest.approx((0, 1), abs=0.05)


def test_ends_that_are_other_figures():
    ends = [
        Descended(np.array(point), loss, 1)
        for point, loss in (([0.0, 0.0], 1.0), ([0.1, 0.0], 1.01), ([3.0, 0.0], 2.0), ([0.0, 9.0], 9.0))
    ]
    (found,) = apart(ends, np.diag([0.01, 1.0]), 3.0)
    assert found.loss == 2.0
