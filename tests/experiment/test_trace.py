"""A step in time: it adds up to the step that was sampled, and its critical path is one."""

import itertools
import json

import numpy as np
import pytest

from mc.errors import InputError
from mc.experiment import run
from mc.experiment.trace import nearest, probability_of, trace
from mc.report.chrome_trace import chrome_trace
from tests.experiment.test_run_training import NOISE, TEXT, noisy

BARRIER = """
name: barrier
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
    - {name: pod, link: {bandwidth: 50 GB/s, duplex: each, latency: 5 us}, fan_out: 8, jitter: {family: exponential, mean: 20 us}}
  noise:
    spread: {family: lognormal, median: 1, sigma: 0.05}
    persistent: [{scope: rank, fraction: 10 %, slowdown: 1.5}]
    transient: [{scope: all, pauses: {probability: 50 %, delay: {family: exponential, mean: 2 ms}}}]
model:
  name: gradients
  compute: {flop: 500 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 100 MB}
plan: {algorithm: ring}
run: {samples: 400, realisations: 4, seed: 5}
"""
CONGESTION = """      congestion:
        shared_by: rank
        persistence: 80 %
        states:
          - {name: free, probability: 70 %}
          - {name: busy, probability: 30 %, slowdown: 3, delay: 50 us}
"""
DEEP = TEXT.replace("samples: 4000", "samples: 64, realisations: 2").replace(
    "fan_out: 2\nmodel", f"fan_out: 2\n{CONGESTION}model"
)


def check(found):
    """What must hold of any trace."""
    assert found.step_s == pytest.approx(found.sampled_s, rel=2e-6)
    # The critical path goes from the start to the end without gaps, so its seconds add up to the step.
    assert found.critical[0].start == 0.0
    for before, after in itertools.pairwise(found.critical):
        assert after.start == before.end
    assert sum(each.end - each.start for each in found.critical) == pytest.approx(found.step_s, rel=1e-12)
    assert all(0 <= each.start < each.end <= found.step_s for each in found.slices)
    # Perfetto nests slices of a lane: here they follow each other.
    for _, lane in itertools.groupby(
        sorted(found.slices, key=lambda each: (each.track, each.lane, each.start)),
        key=lambda each: (each.track, each.lane),
    ):
        for before, after in itertools.pairwise(lane):
            assert after.start >= before.end * (1 - 1e-12)


PLANS = [
    ("plan.schedule=1f1b",),
    ("plan.schedule=zb-h1", "plan.overlap.pipeline=false"),
    ("plan.schedule=interleaved", "plan.chunks=2", "plan.overlap.gradients=false"),
    ("plan.tp=1", "plan.pp=2", "plan.zero=2"),
]


@pytest.mark.parametrize("plan", PLANS, ids=" ".join)
def test_a_pipeline_adds_up_to_its_sampled_step(load, plan):
    found = trace(load(noisy(text=DEEP), *plan), "p90")
    check(found)
    passes = [each for each in found.slices if each.lane == "compute"]
    config = load(DEEP, *plan)
    each = 3 if config.plan.schedule == "zb-h1" else 2
    chunks = config.plan.chunks or 1
    assert len(passes) == each * 2 * chunks * (2 if config.plan.tp == 2 else 1)
    for one in passes:
        parts = [one.about[f"{name}_s"] for name in ("computing", "waiting", "host")]
        assert one.end - one.start == pytest.approx(sum(parts), rel=1e-9)
    assert any(each.lane == "gradients" for each in found.slices)


def test_without_noise_passes_take_what_they_would_undisturbed(load):
    found = trace(load(TEXT), "p50")
    check(found)
    for one in found.slices:
        if one.lane == "compute":
            assert one.end - one.start == pytest.approx(one.about["undisturbed_s"], rel=1e-5)


def test_ranks_that_compute_and_exchange(load):
    config = load(BARRIER)
    found = trace(config, "p99")
    check(found)
    result = run(config)
    assert found.quantile_s == result.estimates.p99.value
    assert found.sampled_s == result.samples[found.realisation, found.sample]
    computing = {each.track: each.end for each in found.slices if each.lane == "compute"}
    assert computing[0] > computing[1] > computing[2] > 0.0
    # All ranks leave the exchange together.
    last = {each.track: each.end for each in found.slices if each.lane == "communication"}
    assert last[0] == last[1] == last[2] == found.step_s


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_typical_ranks_are_those_of_a_brute_force(load, method):
    """A lognormal rank: given the slowest, the others are of its law below that; the median and the fastest by counting."""
    text = BARRIER.replace("    persistent: [{scope: rank, fraction: 10 %, slowdown: 1.5}]\n", "")
    text = text.replace(
        "transient: [{scope: all, pauses: {probability: 50 %, delay: {family: exponential, mean: 2 ms}}}]", ""
    )
    found = trace(load(text, f"run.method={method}"), "p50")
    slowest, median, fastest = (
        next(each.end for each in found.slices if each.lane == "compute" and each.track == track)
        for track in range(3)
    )
    drawn = 0.01 * np.exp(0.05 * np.random.default_rng(1).standard_normal((40_000, 64)))
    below = drawn[drawn[:, :63].max(axis=1) < slowest][:, :63]
    assert median == pytest.approx(np.median(below), rel=1e-3)
    assert fastest == pytest.approx(np.median(below.min(axis=1)), rel=3e-3)


def test_the_same_seed_gives_the_same_file_with_its_critical_path_marked(load):
    config = load(noisy(NOISE, DEEP))
    found = trace(config, "slowest")
    events = chrome_trace(found)["traceEvents"]
    assert chrome_trace(trace(config, "slowest"))["traceEvents"] == events
    path = [each for each in events if each["ph"] == "X" and each["pid"] == 0]
    assert sum(each["dur"] for each in path) == pytest.approx(found.step_s * 1e6, rel=1e-9)
    marked = [each for each in events if each["ph"] == "X" and each["pid"] and "critical" in each["cat"]]
    assert {each["name"] for each in marked} >= {each["name"] for each in path} - {
        "waits for other pipelines"
    }
    starts, ends = ([each for each in events if each["ph"] == phase] for phase in "sf")
    assert len(starts) == len(ends) > 0
    assert all(one["ts"] <= other["ts"] for one, other in zip(starts, ends, strict=True))


def test_nearest_is_the_order_statistic():
    samples = np.random.default_rng(0).permutation(100).reshape(4, 25) + 0.0
    assert nearest(samples, 0.99)[0] == 98.0
    target, place = nearest(samples, 0.5)
    assert samples[place] == target == 49.0
    assert nearest(samples, probability_of("slowest"))[0] == 99.0
    assert nearest(samples, probability_of("fastest"))[0] == 0.0


def test_quantiles_that_there_are_none_of():
    for text in ("99", "p100", "p0", "median", "p-1", "pnan"):
        with pytest.raises(InputError, match="expected a quantile such as p50"):
            probability_of(text)


def test_the_command_writes_a_file(tmp_path, monkeypatch, invoke):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "barrier.yaml").write_text(BARRIER)

    code, _, err = invoke("trace", "barrier.yaml", "--step", "p95", "--out", "step.json")
    assert code == 0
    assert json.loads((tmp_path / "step.json").read_text())["otherData"]["step"] == "p95"
    assert "waits for the slowest rank" in err
    code, _, err = invoke("trace", "barrier.yaml", "--out", "step.txt")
    assert code == 2
    assert "expected a file that ends in .json" in err
    assert invoke("trace", "barrier.yaml", "--step", "p100")[0] == 2
