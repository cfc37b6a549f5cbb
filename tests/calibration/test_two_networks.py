"""A link with one network for small messages and another for large ones: what it costs, and whether it is worth its figures."""

import numpy as np
import pytest

from mc.calibration import CalibrationError, Curve, predict_curves
from mc.calibration.two_networks import choose_networks, with_second_network
from mc.collectives import evaluate, stages
from mc.collectives.registry import CollectiveError
from mc.config import ClusterConfig
from mc.fabric import build_cluster

FIRST = 4096.0
SIZES = np.array([2.0**power for power in range(8, 18)])


def cluster(protocols, fan_out=16):
    link = {"bandwidth": "20 GB/s", "duplex": "each", "latency": "5 us", "protocols": protocols}
    tiers = [{"name": "pod", "link": link, "fan_out": fan_out}]
    return ClusterConfig.model_validate({"name": "system", "chip": {"peak": {}}, "tiers": tiers})


@pytest.fixture(scope="module")
def config():
    return cluster([{"name": "Simple", "hop_latency": "5 us"}])


def ring(ranks, sizes=SIZES):
    """Each hop takes 3 us, and 9 us from 4 KiB on."""
    latency = np.where(sizes < FIRST, 3e-6, 9e-6)
    times = 2 * (ranks - 1) * (latency + sizes / ranks / 20e9)
    return Curve("all-reduce", ranks, ("ring",), "auto", sizes, times, f"{ranks} ranks")


def test_each_size_takes_the_protocol_that_is_for_it():
    slow = {"name": "large", "hop_latency": "9 us", "sizes_from": "4 KiB"}
    quick = {"name": "small", "hop_latency": "3 us", "sizes_below": "4 KiB"}
    config = cluster([quick, slow])
    (found,) = predict_curves(config, [ring(16)])
    np.testing.assert_allclose(found, ring(16).times, rtol=1e-12)
    built = build_cluster(config)
    for size, name in ((4095, "small"), (4096, "large")):
        assert {row.protocol for row in evaluate(built, "all-reduce", 16, size, protocol="all")} == {name}
        (stage,) = stages(built, "all-reduce", 16, size, "ring")
        assert stage.protocol == name
    with pytest.raises(CollectiveError, match="expected a protocol for 8,192 bytes; `sizes_from` and"):
        stages(built, "all-reduce", 16, 8192, "ring", protocol="small")


@pytest.mark.parametrize(
    ("protocols", "message"),
    [
        ([{"sizes_below": "4 KiB"}], "expected a protocol for every size; got none from 4096 bytes on"),
        ([{"sizes_below": "4 KiB"}, {"sizes_from": "8 KiB"}], "got none from 4096 bytes on"),
        ([{"sizes_from": "4 KiB"}], "got none from 0 bytes on"),
        (
            [{}, {"sizes_from": "8 KiB", "sizes_below": "4 KiB"}],
            "expected more than `sizes_from`, 8192 bytes; got 4096",
        ),
    ],
)
def test_sizes_that_nothing_is_for_are_refused(protocols, message):
    table = [{"name": f"p{place}", "hop_latency": "1 us", **each} for place, each in enumerate(protocols)]
    with pytest.raises(ValueError, match=message):
        cluster(table)


def test_a_step_in_latency_gets_a_second_network_and_a_straight_line_does_not(config):
    found = choose_networks(config, [ring(4), ring(8)], FIRST)
    assert found.kept
    assert found.two < 0.05 < found.one
    assert found.by == "all rows of 8 ranks"
    names = [each.name for each in found.config.tiers[0].link.protocols or ()]
    assert names == ["Simple", "Simple-large"]


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ([ring(4, SIZES[4:])], "expected three sizes or more on either side of 4096 bytes"),
        ([Curve("all-reduce", 4, ("ring",), "Simple", SIZES, SIZES, "4 ranks")], "are of one"),
    ],
)
def test_curves_that_do_not_show_both(config, curves, message):
    with pytest.raises(CalibrationError, match=message):
        with_second_network(config, curves, FIRST)


def test_a_line_has_nothing_to_have_twice():
    link = {"bandwidth": "20 GB/s", "duplex": "each", "latency": "5 us"}
    tiers = [{"name": "pod", "link": link, "fan_out": 16}]
    line = ClusterConfig.model_validate({"name": "line", "chip": {"peak": {}}, "tiers": tiers})
    with pytest.raises(CalibrationError, match="expected a link with protocols among pod"):
        with_second_network(line, [ring(4)], FIRST)
