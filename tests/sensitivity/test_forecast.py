"""Intervals from figures that are not known, against models in which they can be written down."""

import math

import numpy as np
import pytest
from scipy import stats

from mc.config import ExperimentConfig
from mc.config.posterior import PosteriorConfig
from mc.experiment import run
from mc.sensitivity import with_model
from mc.sensitivity.forecast import DRAWS, draws_of

RANKS, SIZE, BANDWIDTH, SPREAD = 8, 1e9, 50e9, 0.2


def experiment(**noise):
    row = {
        "paths": ["tiers.net.link.bandwidth"],
        "space": "positive",
        "mean": math.log(BANDWIDTH),
        "factor": [SPREAD],
    }
    cluster = {
        "name": "small",
        "chip": {"peak": {}},
        "tiers": [
            {
                "name": "net",
                "fan_out": RANKS,
                "link": {"bandwidth": "50 GB/s", "duplex": "each", "latency": "0 s"},
            }
        ],
        "noise": noise,
        "posterior": {"source": "a log", "parameters": [row]},
    }
    return ExperimentConfig.model_validate(
        {
            "name": "one link",
            "cluster": cluster,
            "model": {
                "name": "m",
                "compute": {"time": "10 ms"},
                "exchange": {"collective": "all-reduce", "size": "1 GB"},
            },
            "plan": {"ranks": "all", "algorithm": "ring"},
            "run": {"samples": 400, "realisations": 4},
        }
    )


def transfer(z):
    """Seconds of a ring's bytes where the bandwidth is z standard deviations from its mean."""
    return 2 * (RANKS - 1) / RANKS * SIZE / (BANDWIDTH * math.exp(SPREAD * z))


def stratum(level):
    """Between which z a quantile of stratified draws of one cause lies."""
    place = level * (DRAWS - 1)
    return stats.norm.ppf([math.floor(place) / DRAWS, (math.ceil(place) + 1) / DRAWS])


@pytest.fixture(scope="module")
def found():
    config = experiment(jitter={"family": "exponential", "mean": "1 ms"})
    return with_model(config, run(config))


def test_a_step_that_falls_with_one_figure_has_the_ends_of_that_figure(found):
    assert found.model is not None
    for name, estimate in found.estimates.items():
        for end, level in zip(found.model.ends[name], (0.025, 0.975), strict=True):
            # The slower end is that of the lower bandwidth.
            least, most = (transfer(-z) for z in stratum(level))
            moved = end - estimate.value + transfer(0)
            assert min(least, most) * (1 - 1e-4) <= moved <= max(least, most) * (1 + 1e-4)


def test_sampling_is_not_in_it(found):
    # All numbers move as the mean does: the noise is that of computing, and the same for every draw.
    widths = [high - low for low, high in found.model.ends.values()]
    assert widths == pytest.approx([widths[0]] * len(widths), rel=1e-4)


def calibrated(rows, noise, **run):
    """An experiment whose cluster is known and whose own figures are not."""
    plain = experiment(**noise).model_dump(mode="json", exclude_none=True)
    del plain["cluster"]["posterior"]
    plain["posterior"] = {"source": "steps.csv", "parameters": rows}
    return ExperimentConfig.model_validate(plain | {"run": plain["run"] | run})


def test_what_a_rank_computes_moves_the_step_as_in_the_closed_form():
    # Time and mean together: exp(a z) of the one, exp(b z) of the other, from one cause.
    compute, mean, a, b = 10e-3, 1e-3, 0.1, 0.3
    rows = [
        {"paths": ["model.compute.time"], "space": "positive", "mean": math.log(compute), "factor": [a]},
        {"paths": ["cluster.noise.jitter.mean"], "space": "positive", "mean": math.log(mean), "factor": [b]},
    ]
    config = calibrated(rows, {"jitter": {"family": "exponential", "mean": "1 ms"}})
    result = with_model(config, run(config))
    assert result.model is not None
    assert (result.model.source, result.model.figures, result.model.draws) == ("steps.csv", 2, DRAWS)
    # The slowest of eight exponentials: mean H_8, and -log(1 - p^(1/8)) at p.
    exact = {
        "mean": sum(1 / k for k in range(1, RANKS + 1)),
        "p50": -math.log(-math.expm1(math.log(0.5) / RANKS)),
    }
    for name, factor in exact.items():
        estimate = getattr(result.estimates, name).value
        drawn = (estimate - compute - transfer(0)) / mean
        # Both ends of 400 steps' interval are within 15 %.
        assert drawn == pytest.approx(factor, rel=0.15)
        for end, level in zip(result.model.ends[name], (0.025, 0.975), strict=True):
            ends = [compute * math.expm1(a * z) + drawn * mean * math.expm1(b * z) for z in stratum(level)]
            assert min(ends) - 1e-7 <= end - estimate <= max(ends) + 1e-7


def test_how_many_chips_are_slow_is_drawn_anew():
    # From hardly any to nearly all: the least end has no slow chip in any realisation, the most one in each.
    rows = [{"paths": ["cluster.noise.slow_chips.fraction"], "space": "share", "mean": 0.0, "factor": [4.0]}]
    config = calibrated(rows, {"slow_chips": {"fraction": 0.5, "slowdown": 1.5}}, samples=8)
    result = with_model(config, run(config))
    assert result.model is not None
    assert result.model.ends["mean"] == pytest.approx((10e-3 + transfer(0), 15e-3 + transfer(0)), rel=1e-5)


def test_draws_have_the_law_of_the_posterior():
    rows = [
        {"paths": ["a"], "space": "positive", "mean": 1.0, "factor": [0.5]},
        {"paths": ["b"], "space": "positive", "mean": -2.0, "factor": [-0.3, 0.4]},
    ]
    posterior = PosteriorConfig.model_validate({"source": "x", "parameters": rows})
    drawn = np.log([[each["a"], each["b"]] for each in draws_of(posterior, 4000, 1)])
    assert drawn.mean(axis=0) == pytest.approx([1.0, -2.0], abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(np.array([[0.25, -0.15], [-0.15, 0.25]]), abs=0.03)
