"""What follows on more ranks and with faster chips, against closed forms; the map of algorithms against the choice itself."""

import math

import numpy as np
import pytest

from mc.collectives import select
from mc.config import load_experiment
from mc.experiment import outlook
from mc.fabric import build_cluster

TWO_TIERS = """
name: two tiers
cluster:
  name: two tiers
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  noise: {jitter: {family: exponential, mean: 1 ms}}
  tiers:
    - {name: node, link: {bandwidth: 100 GB/s, duplex: each, latency: 1 us}, fan_out: 4}
    - {name: pod, link: {bandwidth: 25 GB/s, duplex: each, latency: 5 us}, fan_out: 4}
model: {name: any, compute: {time: 10 ms}, exchange: {collective: all-reduce, size: 100 MB}}
plan: {ranks: 16}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    file = tmp_path_factory.mktemp("outlook") / "two.yaml"
    file.write_text(TWO_TIERS)
    return load_experiment(file)


@pytest.fixture(scope="module")
def choices(config):
    return outlook.choice_map(config, (2, 4, 16))


def test_the_slowest_of_n_exponentials(config):
    """Median 10 ms - θ·ln(1 - 2^(-1/n)), on a million ranks of a cluster of 16 as well."""
    found = outlook.slowest_curve(config)
    assert found.ranks[0] == 1
    assert found.ranks[-1] == 2**20
    assert found.here in found.ranks
    assert found.alone == pytest.approx(11e-3, rel=1e-4)
    for values, level in ((found.median, 0.5), (found.p99, 0.99)):
        exact = 10e-3 - 1e-3 * np.log(-np.expm1(math.log(level) / found.ranks))
        np.testing.assert_allclose(values, exact, rtol=1e-4)


def test_the_mean_of_the_slowest_is_a_harmonic_number(config, choices):
    found = outlook.scaling(config, (2, 4, 16), choices)
    exchange = {row.ranks: row.times[list(choices.sizes).index(100e6)] for row in choices.rows}
    for place, ranks in enumerate((2, 4, 16)):
        harmonic = sum(1 / rank for rank in range(1, ranks + 1))
        assert found.steps["weak"][place] == pytest.approx(
            10e-3 + 1e-3 * harmonic + exchange[ranks], rel=1e-4
        )
        strong = 10e-3 * 16 / ranks
        assert found.steps["strong"][place] == pytest.approx(
            strong + 1e-3 * harmonic + exchange[ranks], rel=1e-4
        )
        assert found.efficiency("strong", quiet=True)[place] == pytest.approx(
            strong / (strong + exchange[ranks]), rel=1e-4
        )
    np.testing.assert_allclose(found.speedup("weak"), found.ranks * found.efficiency("weak"))
    np.testing.assert_allclose(found.efficiency("weak") * found.steps["weak"], 11e-3, rtol=1e-4)
    # At the experiment's own size both are the same experiment.
    assert found.steps["weak"][-1] == found.steps["strong"][-1]


def test_faster_chips_leave_the_exchange_and_the_jitter(config):
    """(c + w + x)/(c/k + w + x), and for k without end (c + w + x)/(w + x)."""
    waits, exchange = 1e-3 * sum(1 / rank for rank in range(1, 17)), 5e-3
    found = outlook.saturation(config, exchange - 1e-3, congestion=1e-3)
    for speedups, limit, left in (
        (found.noisy, found.limits[0], waits + exchange),
        (found.quiet, found.limits[1], exchange - 1e-3),
    ):
        exact = (10e-3 + left) / (10e-3 / found.factors + left)
        np.testing.assert_allclose(speedups, exact, rtol=1e-4)
        assert limit == pytest.approx((10e-3 + left) / left, rel=1e-4)


def test_the_map_is_the_choice_at_each_size(config, choices):
    cluster = build_cluster(config.cluster)
    assert [row.ranks for row in choices.rows] == [2, 4, 16]
    for row in choices.rows:
        for place in (0, len(choices.sizes) // 2, -1):
            chosen = select(cluster, "all-reduce", row.ranks, choices.sizes[place])
            assert row.ways[place][0] == chosen
    assert outlook.exchange_time(config, choices) == pytest.approx(outlook.exchange_time(config), rel=1e-6)


def test_what_has_no_closed_form_is_refused(config):
    with pytest.raises(outlook.OutlookError, match="expected a model with `compute` and `exchange`"):
        outlook.check_outlook(
            config.model_copy(update={"model": config.model.model_copy(update={"exchange": None})})
        )
