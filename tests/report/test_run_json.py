"""The JSON of a run: its keys, its sums, and that it is JSON."""

import json

import numpy as np
import pytest

from mc.report import run_json
from tests.results.example import example_result

STATISTICS = ["mean", "p50", "p95", "p99", "p99_9"]


def test_keys():
    found = run_json(example_result())
    assert set(found) == {
        *("step_time_s", "waterfall_s", "samples", "seed", "config_hash", "elapsed_s"),
        *("name", "ranks", "samples_per_s", "slowest_rank", "ideal_network", "method", "realisations"),
    }
    assert list(found["step_time_s"]) == [*STATISTICS, "ci"]
    assert list(found["step_time_s"]["ci"]) == ["level", *STATISTICS]
    assert list(found["waterfall_s"]) == [
        "compute",
        "straggler_wait",
        "bandwidth",
        "latency_floor",
        "congestion",
    ]
    assert set(found["ideal_network"]) == {"step_time_s", "slowdown"}


def test_is_strict_json_with_null_for_no_bound():
    result = example_result()
    text = json.dumps(run_json(result), allow_nan=False)
    low, high = json.loads(text)["step_time_s"]["ci"]["p99_9"]
    assert isinstance(low, float)
    assert high is None


def test_numbers():
    result = example_result()
    found = run_json(result)
    assert found["step_time_s"]["mean"] == pytest.approx(
        float(np.mean(result.samples, dtype=np.float64)), rel=1e-12
    )
    assert sum(found["waterfall_s"].values()) == pytest.approx(found["step_time_s"]["mean"], rel=1e-14)
    assert found["step_time_s"]["ci"]["level"] == 0.95
    assert (found["samples"], found["realisations"], found["seed"], found["ranks"]) == (200, 4, 7, 64)
    assert found["samples_per_s"] == 400.0
    assert found["ideal_network"]["slowdown"] == pytest.approx(found["step_time_s"]["mean"] / 1.2e-4)
    slowest = found["slowest_rank"]
    assert slowest["wait_s"] == pytest.approx(found["waterfall_s"]["straggler_wait"])
    assert slowest["chip_hours_per_hour"] == pytest.approx(64 * slowest["share"])


def test_no_time_and_no_ideal_do_not_divide_by_zero():
    found = run_json(example_result(sampling_s=0.0, ideal_step_time=0.0))
    assert found["samples_per_s"] == 0.0
    assert found["ideal_network"]["slowdown"] is None
