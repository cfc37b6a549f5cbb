"""Numbers of a configuration by path: read, replaced, and what is refused."""

import re

import pytest

from mc.calibration import CalibrationError, Parameters, parameter_at
from mc.calibration.paths import replaced, value_at
from mc.config import load_cluster


@pytest.fixture(scope="module")
def config():
    return load_cluster("dgx-h100-superpod")


def test_items_go_by_name_or_place(config):
    assert value_at(config, "tiers.node.link.bandwidth") == 900e9
    assert value_at(config, "tiers.0.link.bandwidth") == 900e9
    assert value_at(config, "tiers.node.link.protocols.LL128.hop_latency") == pytest.approx(1.9e-6)


def test_a_family_reads_what_it_inherits_and_is_replaced_alone(config):
    path = "tiers.node.link.protocols.LL128.ring.hop_latency"
    assert value_at(config, path) == pytest.approx(1.9e-6)
    found = replaced(config, {path: 5e-6})
    assert value_at(found, path) == 5e-6
    assert value_at(found, "tiers.node.link.protocols.LL128.tree.hop_latency") == pytest.approx(1.25e-6)
    assert value_at(config, path) == pytest.approx(1.9e-6)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tiers.nod.link.bandwidth", "unknown item `nod`; did you mean `node`?"),
        ("tiers.node.link.bandwith", "unknown key `bandwith`; did you mean `bandwidth`?"),
        ("tiers.node.link", "expected the path of one number; got that of several"),
        ("tiers.node.link.bandwidth.x", "`x` is below one"),
        ("tiers.node.jitter.mean", "expected a number; got none at `tiers.node.jitter`"),
    ],
)
def test_wrong_paths(config, path, message):
    with pytest.raises(CalibrationError, match=re.escape(message)):
        value_at(config, path)


def test_what_cannot_be_fitted(config):
    with pytest.raises(CalibrationError, match="expected a figure that can be fitted"):
        parameter_at(config, "tiers.node.fan_out")
    with pytest.raises(CalibrationError, match="expected a prior above 0; got 0, so give it one"):
        parameter_at(replaced(config, {"tiers.node.link.latency": 0.0}), "tiers.node.link.latency")
    one = parameter_at(config, "tiers.node.link.bandwidth")
    with pytest.raises(CalibrationError, match="expected each free parameter once; got it twice"):
        Parameters((one, one))
    with pytest.raises(CalibrationError, match="expected at least one free parameter; got none"):
        Parameters(())
