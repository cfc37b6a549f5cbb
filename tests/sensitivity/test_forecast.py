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


def test_draws_have_the_law_of_the_posterior():
    rows = [
        {"paths": ["a"], "space": "positive", "mean": 1.0, "factor": [0.5]},
        {"paths": ["b"], "space": "positive", "mean": -2.0, "factor": [-0.3, 0.4]},
    ]
    posterior = PosteriorConfig.model_validate({"source": "x", "parameters": rows})
    drawn = np.log([[each["a"], each["b"]] for each in draws_of(posterior, 4000, 1)])
    assert drawn.mean(axis=0) == pytest.approx([1.0, -2.0], abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(np.array([[0.25, -0.15], [-0.15, 0.25]]), abs=0.03)
