"""A transformer's steps through the whole program, against what is known without it."""

import json

import numpy as np
import pytest

import mc.experiment.run_training as run_training
import mc.experiment.training_draws as training_draws
from mc.config import load_experiment
from mc.experiment import run
from mc.experiment.quiet_step import build_quiet
from mc.report import run_json
from mc.results import read_run, write_run
from tests.stats import assert_fraction, assert_same_law

TEXT = """
name: small
cluster:
  name: three tiers
  chip:
    name: quick
    peak: {bf16: 200 TFLOP/s}
    memory_bandwidth: 2 TB/s
    memory_size: 80 GB
    efficiency: {launch: 0 s, collective_launch: 0 s, pass_launch: 0 s, step: 0 s}
  tiers:
    - name: node
      link: {bandwidth: 300 GB/s, duplex: each, latency: 1 us}
      fan_out: 2
    - name: rack
      link: {bandwidth: 100 GB/s, duplex: each, latency: 3 us}
      fan_out: 2
    - name: hall
      link: {bandwidth: 25 GB/s, duplex: each, latency: 5 us}
      fan_out: 2
model:
  name: tiny
  transformer: {layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 32000, gated: false}
plan: {tp: 2, pp: 2, micro_batch: 1, global_batch: 4, sequence_length: 1024}
run: {samples: 4000, seed: 3}
"""
FAILURES = "failures: {mtbf_per_chip: 50000 h, restart: 10 min, checkpoint_write: 10 s}\n"
NOISE = """  noise:
    spread: {family: lognormal, median: 1, sigma: 0.05}
    persistent: [{scope: rank, fraction: 10 %, slowdown: 1.5}]
    transient: [{scope: node, pauses: {probability: 10 %, delay: {family: exponential, mean: 5 ms}}}]
"""


def noisy(noise=NOISE, text=TEXT):
    return text.replace("model:\n", noise + "model:\n", 1)


@pytest.fixture
def load(load):
    return lambda text=TEXT, *overrides: load(text, *overrides)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    path = tmp_path_factory.mktemp("quiet") / "experiment.yaml"
    path.write_text(TEXT + FAILURES)
    return run(load_experiment(path))


def test_without_noise_all_steps_are_the_evaluation(quiet):
    assert quiet.samples.shape == (1, 4000)
    assert np.ptp(quiet.samples) == 0.0
    parts = {part.name: part.time.value for part in quiet.waterfall.parts}
    assert sum(parts.values()) == pytest.approx(quiet.samples[0, 0], rel=1e-12)
    assert all(parts[name] == 0.0 for name in run_training.NOISE_PARTS)


def test_the_object_has_what_programs_want(quiet):
    found = json.loads(json.dumps(run_json(quiet), allow_nan=False))
    step = found["step_time_s"]["mean"]
    assert found["tokens_per_step"] == 4 * 1024
    assert found["tokens_per_s"] == pytest.approx(4096 / step)
    # 6 FLOP per parameter of a product and token, and 12·layers·hidden·length for attention.
    products = 4 * (4 * 1024**2 + 2 * 1024 * 4096) + 32_000 * 1024
    work = 4096 * (6 * products + 12 * 4 * 1024 * 1024)
    assert found["tflops_per_chip"] == pytest.approx(work / 8 / step / 1e12, rel=1e-6)
    assert found["mfu"] == found["hfu"] == pytest.approx(found["tflops_per_chip"] / 200)
    assert 0 < found["bubble_fraction"] < 1
    assert set(found["exposed_s"]) == {"tp", "pp", "dp"}
    memory = found["memory_bytes"]
    kinds = ("weights", "gradients", "optimizer", "activations", "buffers")
    assert memory["total"] == pytest.approx(sum(memory[name] for name in kinds))
    assert memory["available"] == 80e9
    assert sum(found["waterfall_s"].values()) == pytest.approx(step, rel=1e-9)
    goodput = found["goodput"]
    shares = ("effective_ratio", "checkpointing", "recomputing", "restarting", "waiting")
    assert sum(goodput[name] for name in shares) == pytest.approx(1.0)
    assert goodput["interruptions_per_day"] == pytest.approx(24 * 8 / 50_000)


def test_what_is_kept_comes_back(quiet, tmp_path):
    write_run(tmp_path / "kept", quiet)
    back = read_run(tmp_path / "kept").result
    assert back.training == quiet.training
    assert back.training.goodput is not None
    np.testing.assert_array_equal(back.samples, quiet.samples)
    first, again = (run_json(each) for each in (quiet, back))
    assert first == again


def test_noise_that_does_nothing_leaves_the_evaluation(load, quiet):
    # Sampled all the same, in single precision.
    nothing = "  noise: {spread: {family: lognormal, median: 1, sigma: 1e-7}}\n"
    for gradients in ("true", "false"):
        keys = f", overlap: {{gradients: {gradients}, parameters: {gradients}}}, zero: 1, sequence_length"
        text = TEXT.replace(", sequence_length", keys)
        sampled = run(load(noisy(nothing, text), "run.samples=40"))
        np.testing.assert_allclose(sampled.samples, run(load(text)).samples[0, 0], rtol=2e-5)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    path = tmp_path_factory.mktemp("sampled") / "experiment.yaml"
    path.write_text(noisy())
    keys = ("run.realisations=90", "run.samples=900")
    return {
        method: run(load_experiment(path, (*keys, f"run.method={method}"))) for method in ("exact", "direct")
    }


def test_exact_and_direct_have_one_law(sampled):
    exact, direct = (sampled[method].samples for method in ("exact", "direct"))
    assert exact.shape == direct.shape == (90, 10)
    assert_same_law(exact[:, 0], direct[:, 0])
    # The same chips are slow and the same nodes pause: what differs is the spread.
    assert_same_law(exact - exact.mean(axis=1, keepdims=True), direct - direct.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(exact.mean(), direct.mean(), rtol=1e-2)


def test_the_same_numbers_however_they_are_cut(load, monkeypatch):
    states = "congestion: {shared_by: node, states: [{name: idle, probability: 80 %}, {name: busy, probability: 20 %, slowdown: 3}]}"
    text = noisy().replace("fan_out: 2\n", f"fan_out: 2\n      {states}\n", 1)
    keys = ("run.realisations=1", "run.samples=150")
    first = run(load(text, *keys)).samples
    monkeypatch.setattr(training_draws, "_CALL", 32)
    monkeypatch.setattr(training_draws, "batch_for", lambda timetable: 32)
    np.testing.assert_array_equal(run(load(text, *keys)).samples, first)
    other = run(load(text, *keys, "run.seed=4")).samples
    assert (other != first).mean() > 0.99


def test_a_pause_of_the_whole_job_is_a_step_longer(load):
    noise = "  noise: {transient: [{scope: all, pauses: {probability: 30 %, delay: {family: constant, value: 50 ms}}}]}\n"
    result = run(load(noisy(noise), "run.samples=2000"))
    longer = result.samples[0] - run(load()).samples[0, 0]
    paused = longer > 1e-3
    assert_fraction(int(paused.sum()), 2000, 0.3)
    np.testing.assert_allclose(longer[~paused], 0.0, atol=1e-6)
    # Stages pause at the same operation of theirs, one after the other or at once.
    assert np.all(longer[paused] > 0.05 - 0.02)
    assert np.all(longer[paused] < 0.1 + 1e-6)


def test_busy_links_stretch_what_crosses_them(load):
    # All eight share matrices: everything that they wait for is three times as long, but for latency.
    states = "congestion: {shared_by: rack, states: [{name: idle, probability: 50 %}, {name: busy, probability: 50 %, slowdown: 3}]}"
    text = TEXT.replace("tp: 2, pp: 2", "tp: 8").replace(
        "fan_out: 2\nmodel", f"fan_out: 2\n      {states}\nmodel"
    )
    result, idle = run(load(text, "run.samples=1000")), build_quiet(load(text.replace(states, ""))).breakdown
    congestion = result.parts["congestion"][0]
    busy = congestion > 1e-9
    assert_fraction(int((~busy).sum()), 1000, 0.25)
    moved = sum(message.each * price.bandwidth for message, price in idle.times.step)
    np.testing.assert_allclose(congestion[busy], 2 * (idle.parts["bandwidth"] + moved), rtol=1e-3)


def test_each_bucket_waits_for_the_slowest_rank(load):
    # Experts on pairs of ranks, replicated four times: two kinds of gradients cross the hall.
    keys = "overlap: {gradients: false}, bucket: 20 MB, ep: 2, global_batch: 8"
    text = TEXT.replace("tp: 2, pp: 2, micro_batch: 1, global_batch: 4", f"micro_batch: 1, {keys}").replace(
        "gated: false", "gated: false, experts: {count: 4, top_k: 2, ffn: 1024}"
    )
    text = text.replace(
        "fan_out: 2\nmodel", "fan_out: 2\n      jitter: {family: constant, value: 1 ms}\nmodel"
    )
    result, quiet = run(load(text, "run.samples=20")), build_quiet(load(text))
    hall = [message for message, _ in quiet.breakdown.times.step if quiet.prices.tier(message.group) == 2]
    assert {message.dimension for message in hall} == {"dp", "edp"}
    assert sum(message.each for message in hall) > 6
    late = 1e-3 * sum(message.each for message in hall)
    np.testing.assert_allclose(result.parts["congestion"], late, rtol=1e-4)


def test_documents_that_vary_never_help(load):
    text = TEXT.replace(
        "sequence_length: 1024}", "sequence_length: 1024, documents: {median: 200, sigma: 1.2}}"
    )
    result = run(load(text, "run.samples=1000"))
    parts = {part.name: part.time.value for part in result.waterfall.parts}
    assert all(seconds >= -1e-9 for seconds in parts.values())
    assert sum(parts.values()) == pytest.approx(result.samples.mean(), rel=1e-9)
    # Without noise of ranks all that is random is in one part, and its mean work in the others.
    assert parts["straggler_wait"] == pytest.approx(0.0, abs=1e-7)
    assert parts["routing_skew"] > 0.0
    whole = build_quiet(load(TEXT)).breakdown.parts
    assert parts["ideal_compute"] < whole["ideal_compute"]
    assert parts["below_peak"] < whole["below_peak"]


MIXED = TEXT.replace("fan_out: 2\n", "fan_out: 2\n      exceptions: [{units: 1, EXCEPTION}]\n", 1)


@pytest.mark.parametrize(
    ("overrides", "text", "expected"),
    [
        (["--set", "run.method=grid"], TEXT, "run.method: expected `exact` or `direct` for a transformer"),
        (
            [],
            MIXED.replace("EXCEPTION", "chip: {name: old, peak: {bf16: 100 TFLOP/s}}"),
            "chip `old`: expected a `memory_bandwidth`",
        ),
        (
            [],
            MIXED.replace(
                "EXCEPTION", "chip: {name: old, peak: {fp16: 100 TFLOP/s}, memory_bandwidth: 1 TB/s}"
            ),
            "old does not offer bf16",
        ),
    ],
)
def test_what_a_transformer_cannot_have_is_refused(overrides, text, expected, tailstep):
    code, _, errors = tailstep(text, *overrides)
    assert code == 2
    assert expected in errors


def test_the_command_prints_one_object(tailstep, tmp_path):
    code, output, _ = tailstep(TEXT + FAILURES, "--out", str(tmp_path / "kept"), "--json")
    assert code == 0
    assert json.loads(output)["plan"] == "tp 2 x pp 2 x dp 2, 1f1b"
    assert read_run(tmp_path / "kept").result.training is not None


@pytest.fixture
def tailstep(tmp_path, invoke):
    def command(text, *arguments):
        path = tmp_path / "experiment.yaml"
        path.write_text(text)
        return invoke("run", str(path), *arguments)

    return command
