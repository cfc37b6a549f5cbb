"""Replays and forecasts of measured jobs: the tables, the step graph on them, and what fits find in made-up jobs."""

import json

import numpy as np
import pytest

from experiments.traces.__main__ import main
from experiments.traces.checks import arrivals, slow_gpu
from experiments.traces.forecast import distance, draw, fit, forecast
from experiments.traces.record import Record, load
from experiments.traces.replay import replay


def made_up(steps=400, replicas=2, stages=2, micro_batches=8, seed=1):
    """A job by the model itself, with a slow worker."""
    rng = np.random.default_rng(seed)
    shape = (steps, replicas, stages, 2, micro_batches)
    state = rng.normal(0, 0.03, (steps, 1, 1, 1, 1))
    lengths = rng.normal(0, 0.02, (steps, replicas, 1, 1, micro_batches))
    durations = np.exp(state + lengths + rng.normal(0, 0.005, shape)) * np.array([1.0, 2.0])[:, None]
    durations[:, 0, 0] *= 2.5
    nothing = np.zeros(steps)
    exchanges = np.zeros((replicas, stages))
    pipelines = np.zeros((steps, replicas))
    return Record(
        "made up", np.arange(steps), durations, pipelines, nothing, nothing, nothing, exchanges, exchanges
    )


def test_tables_add_up_to_the_measured_steps():
    for trace, shape in (("AR", (44, 4, 4, 2, 32)), ("ST", (32, 2, 4, 2, 4))):
        record = load(trace)
        assert record.durations.shape == shape
        parts = record.traced + record.host + record.pipelines.max(axis=1)
        np.testing.assert_allclose(parts, record.span, atol=5e-5)


@pytest.mark.parametrize("trace", ["AR", "ST"])
def test_measured_operations_give_the_measured_steps(trace):
    pipeline, traced, whole = replay(trace)
    assert pipeline.worst < 5e-4
    assert pipeline.correlation > 0.9999
    # What is not traced can only be missing.
    assert traced.too_slow == 0
    assert whole.error < 2e-3


def test_a_made_up_job_is_taken_apart():
    record = made_up()
    found = fit(record)
    ratio = np.exp(found.constant[:, 0, 0] - found.constant[:, 1, 1])
    np.testing.assert_allclose(ratio, 2.5, rtol=5e-3)
    assert found.state.std() == pytest.approx(0.03, rel=0.15)
    np.testing.assert_allclose(found.feels, 1.0, atol=0.05)
    np.testing.assert_allclose(found.length, 0.02, rtol=0.1)
    # One of four components takes its part of what is independent.
    np.testing.assert_allclose(found.own, 0.005 * np.sqrt(3 / 4), rtol=0.08)
    assert found.rank.max() < 1e-3
    # A replica's part of independent micro-batches: 1/√8 of their spread.
    assert found.apart == pytest.approx([1 / np.sqrt(8), 1.0], rel=0.1)
    # One lognormal takes the slow worker for noise.
    assert fit(record, "one lognormal").own[0, 0, 0] > 0.3


def test_forecasts_are_nearer_than_those_of_one_lognormal():
    both = forecast("ST", "sequences", 1_000, 0)
    one = forecast("ST", "one lognormal", 1_000, 0)
    assert both.ks <= both.floor < one.ks
    assert both.pooled <= 0.15
    assert abs(both.bias) < 5e-3


def test_draws_without_noise_take_what_the_pipeline_takes():
    # Of the size of ST, so that what is compiled for that is used again.
    record = made_up(steps=16, stages=4, micro_batches=4)
    record.durations[:] = 1.0
    record.durations[:, 0] = 2.0
    # 1F1B of equal stages and passes: (m + p − 1)·2 units, of the slower replica.
    np.testing.assert_allclose(draw(record, "persistent", 1_000), 2 * 2 * (4 + 3), rtol=1e-5)


def test_distance_of_two_samples():
    assert distance(np.array([1.0, 2.0]), np.array([3.0])) == 1
    assert distance(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == 0.5


def test_small_records():
    found = slow_gpu()
    # Of m + p − 1 = 139 slots all but those of filling and draining pass the slow stage, in which it works in m = 128.
    slowdown = 303.6 / 296.5 - 1
    assert slowdown * (128 - 11) / 139 < found.expected - 1 < slowdown * 128 / 139
    assert found.expected < found.measured < found.slowdown
    measured, *laws = arrivals()
    assert measured.least < 0.1 < 0.9 < measured.most
    assert all(law.inside < 0.5 for law in laws)


def test_the_command(capsys, monkeypatch):
    monkeypatch.setattr("experiments.traces.__main__.SIZES", {"ST": (2, 4, 4)})
    monkeypatch.setattr("experiments.traces.__main__.MODELS", ("sequences",))
    assert main(["--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["trace"] for row in found["forecast"]] == ["ST"]
