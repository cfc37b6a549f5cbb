"""Figures with borders from coordinates without: round trips and borders."""

import jax
import numpy as np
import pytest

from mc.calibration import chosen
from mc.calibration.errors import CalibrationError
from mc.config import load_cluster
from mc.config.calibration import FreeConfig
from mc.config.figures import figure_at

STATES = "tiers.cluster.congestion.states"
PATHS = (
    f"{STATES}.busy.probability",
    f"{STATES}.slowdown",
    "tiers.pod.congestion.states.collision.probability",
    "tiers.pod.congestion.states.collision.slowdown",
    "tiers.node.link.bandwidth",
    "noise.slow_chips.fraction",
)


@pytest.fixture(scope="module")
def config():
    return load_cluster("fabric-100k")


@pytest.fixture(scope="module")
def parameters(config):
    return chosen(config, [FreeConfig(path=path) for path in PATHS])


def test_at_the_centre_is_what_the_file_says(config, parameters):
    found = parameters.values(np.zeros(len(parameters)))
    assert [each.space for each in parameters.items] == [
        *("simplex", "simplex", "simplex", "factor", "positive", "share", "ordered", "ordered")
    ]
    expected = [figure_at(config, each.paths[0]) for each in parameters.items]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_borders_hold_wherever_a_fit_goes(config, parameters):
    z = 2 * np.random.default_rng(3).normal(size=len(parameters))
    with jax.enable_x64(True):
        found = parameters.settled(config, z)
    for tier in found.tiers[2:]:
        states = tier.congestion.states
        assert sum(each.probability for each in states) == pytest.approx(1, abs=1e-9)
        slowdowns = [each.slowdown for each in states]
        assert slowdowns == sorted(slowdowns)
        assert slowdowns[0] == 1


def test_intervals_of_parts_of_a_whole_lie_around_them(parameters):
    with jax.enable_x64(True):
        low, value, high = parameters.interval(
            np.zeros(len(parameters)), 0.01 * np.eye(len(parameters)), 0.9
        ).T
    assert (low < value).all()
    assert (value < high).all()


def test_a_step_down_has_no_place(config):
    with pytest.raises(CalibrationError, match=r"expected a prior of at least 1; got 0\.5"):
        chosen(config, [FreeConfig(path=f"{STATES}.busy.slowdown", prior=0.5)])
    with pytest.raises(CalibrationError, match="expected each free parameter once; got it twice"):
        chosen(config, [FreeConfig(path=PATHS[4]), FreeConfig(path=PATHS[4])])
