"""Elasticities of barrier steps, against closed forms, Euler's theorem and finite differences."""

import math

import pytest
from scipy import stats

from mc.config import ExperimentConfig
from mc.config.figures import figure_at, figures, with_figures
from mc.experiment.run import draw_steps
from mc.sensitivity import SensitivityError, sensitivity
from mc.units import Dimension

RANKS, COMPUTE = 64, 10e-3


def experiment(noise, *, samples=4000, link="5 us", exchange=None):
    tier = {
        "name": "net",
        "fan_out": RANKS,
        "link": {"bandwidth": "50 GB/s", "duplex": "each", "latency": link},
    }
    return ExperimentConfig.model_validate(
        {
            "name": "one tier",
            "cluster": {"name": "small", "chip": {"peak": {}}, "tiers": [tier], "noise": noise},
            "model": {
                "name": "m",
                "compute": {"time": "10 ms"},
                "exchange": exchange or {"collective": "all-reduce", "size": "100 MB"},
            },
            "plan": {"ranks": "all", "algorithm": "dissemination" if exchange else "ring"},
            "run": {"samples": samples, "realisations": 20, "confidence": 0.999999},
        }
    )


def by_path(found):
    return {each.path: each for each in found.elasticities}


def inside(estimate, truth, *, slack=1e-4):
    assert estimate.low - slack <= truth <= estimate.high + slack


@pytest.fixture(scope="module")
def exponential():
    return sensitivity(experiment({"jitter": {"family": "exponential", "mean": "1 ms"}}), 4000)


def test_the_slowest_of_n_exponential(exponential):
    # The mean of the slowest is theta H_n (Renyi), its quantile -theta log(1 - p^(1/n)).
    fixed = COMPUTE + 2 * (RANKS - 1) * 5e-6 + 2 * (RANKS - 1) / RANKS * 100e6 / 50e9
    mean = 1e-3 * sum(1 / k for k in range(1, RANKS + 1))
    each = by_path(exponential)["cluster.noise.jitter.mean"]
    inside(each.mean, mean / (fixed + mean))
    for name, probability in (("p50", 0.5), ("p99", 0.99)):
        late = -1e-3 * math.log(-math.expm1(math.log(probability) / RANKS))
        inside(each.of(name), late / (fixed + late), slack=5e-3)
    # What is certain has no noise of its own: its elasticity is its share of the step.
    latency = by_path(exponential)["cluster.tiers.net.link.latency"]
    inside(latency.mean, 2 * (RANKS - 1) * 5e-6 / (fixed + mean))


def test_elasticities_add_up_to_one(exponential):
    """Euler: a step is homogeneous of degree 1 in times and inverse rates, whatever is drawn."""
    config = experiment({"jitter": {"family": "exponential", "mean": "1 ms"}})
    degree = {Dimension.TIME: 1, Dimension.BANDWIDTH: -1}
    degrees = {each.path: degree.get(each.dimension, 0) for each in figures(config)}
    for name in ("mean", "p50", "p99"):
        total = sum(degrees[each.path] * each.of(name).value for each in exponential.elasticities)
        assert total == pytest.approx(1, abs=1e-4)


def test_the_spread_of_lognormal_ranks():
    # Median of the slowest: time * exp(sigma z) with z the normal quantile of p^(1/n), so e = sigma z but for the exchange.
    spread = {"family": "lognormal", "median": 1, "sigma": 0.1}
    config = experiment({"spread": spread}, exchange={"collective": "barrier"}, link="0 s")
    found = by_path(sensitivity(config, 4000))
    for name, probability in (("p50", 0.5), ("p99", 0.99)):
        z = stats.norm.ppf(probability ** (1 / RANKS))
        inside(found["cluster.noise.spread.sigma"].of(name), 0.1 * z, slack=5e-3)
        assert found["cluster.noise.spread.median"].of(name).value == pytest.approx(1, abs=1e-4)


def test_gradients_are_the_slopes_of_the_steps_that_a_run_draws():
    noise = {
        "spread": {"family": "lognormal", "median": 1, "sigma": 0.05},
        "slow_chips": {"fraction": 0.02, "slowdown": 1.2},
    }
    config = experiment(noise, samples=2000)
    found = by_path(sensitivity(config, 2000))
    for path in (
        "cluster.noise.spread.sigma",
        "cluster.noise.slow_chips.slowdown",
        "cluster.tiers.net.link.bandwidth",
    ):
        value, step = figure_at(config, path), 1e-2
        # Single precision: the step is large enough for rounding, and the curve straight enough for the step.
        less, more = (draw_steps(with_figures(config, {path: value * (1 + s * step)})) for s in (-1, 1))
        slope = (more.mean() - less.mean()) / (2 * step) / draw_steps(config).mean()
        assert found[path].mean.value == pytest.approx(slope, rel=0.01, abs=1e-3)
    assert found["cluster.noise.slow_chips.slowdown"].method == "gradient"
    # How many are slow is a whole number.
    fraction = found["cluster.noise.slow_chips.fraction"]
    assert fraction.method == "differences"
    assert 0 < fraction.mean.value < 0.2


def test_what_is_served_is_refused():
    config = experiment({}).model_copy(update={"serving": object()})
    with pytest.raises(SensitivityError, match="got one with `serving`"):
        sensitivity(config, 100)
