"""Runs that serve: parts add up, latencies follow from steps, results are kept and read back."""

import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from mc.experiment import run
from mc.experiment.serving_front import serving_front
from mc.report import run_json
from mc.report.pictures.serving import plot_serving
from mc.results import read_run, write_run
from tests.inference.servers import MIXTURE, experiment

RUN = {"samples": 400, "realisations": 4}
NOISE = {
    "spread": {"family": "lognormal", "median": 1, "sigma": 0.05},
    "slow_chips": {"fraction": 0.2, "slowdown": 1.5},
}


def result(serving, **options):
    return run(experiment(serving, latency="2 us", run=RUN, **options))


@pytest.fixture(scope="module")
def served():
    block = {
        "tp": 2,
        "dp": 2,
        "ep": 4,
        "batch": 16,
        "routing": {"skew": 0.5},
        "speculation": {"width": 2, "acceptance": 0.5},
    }
    return result(block, shape=MIXTURE, noise=NOISE)


def test_parts_add_up_to_the_step(served):
    found = run_json(served)
    assert sum(found["waterfall_s"].values()) == pytest.approx(found["step_time_s"]["mean"], rel=1e-6)
    assert found["itl_s"]["mean"] == pytest.approx(found["step_time_s"]["mean"])
    assert found["ttft_s"]["mean"] == pytest.approx(sum(found["ttft_parts_s"].values()))
    for name in ("straggler_wait", "routing_skew", "prefill"):
        assert found["waterfall_s"][name] > 0


def test_tokens_follow_from_steps(served):
    found = run_json(served)
    assert found["tokens_per_step"] == pytest.approx(1.75)
    made = 16 * 1.75 / found["itl_s"]["mean"]
    # A request's first token comes with its prompt.
    assert found["tokens_per_s"] == pytest.approx(made * 257 / 256)
    assert found["tokens_per_s_per_chip"] == pytest.approx(found["tokens_per_s"] / 4)
    assert found["tpot_s"]["mean"] == pytest.approx(found["itl_s"]["mean"] / 1.75, rel=0.02)
    # By Little's law as many are at work as there is room for.
    assert found["concurrency"] == pytest.approx(16, rel=0.02)
    assert found["ttft_s"]["p99"] > found["ttft_s"]["p50"]


def test_a_run_that_serves_is_kept(served, tmp_path):
    write_run(tmp_path / "run", served)
    assert read_run(tmp_path / "run").result.serving == served.serving
    json.dumps(run_json(served), allow_nan=False)


def test_prompts_on_ranks_of_their_own_do_not_delay_tokens():
    block = {"tp": 2, "batch": 16}
    together = run_json(result(block))
    apart = run_json(result({**block, "prefill": {"tp": 4}}))
    assert together["waterfall_s"]["prefill"] > 0
    assert apart["waterfall_s"]["prefill"] == 0
    assert apart["tpot_s"]["p99"] < together["tpot_s"]["p50"]
    assert apart["ttft_parts_s"]["kv_transfer"] > 0
    # As many chips prefill as keep up with the answers.
    wanted = apart["requests_per_s"] * apart["ttft_parts_s"]["prefill"] * 4
    assert apart["prefill_chips"] == pytest.approx(wanted)


def test_keys_and_values_take_their_bytes_over_a_tier():
    block = {"tp": 2, "batch": 16, "prefill": {"tp": 4, "tier": "cluster", "overlap": False}}
    found = run_json(result(block))
    size = 2 * 4 * 2 * 8 * 64 * 1024
    assert found["ttft_parts_s"]["kv_transfer"] == pytest.approx(2e-6 + size / 2 / 50e9)


def test_prompts_wait_for_each_other():
    """A line that is busy half of the time: by Pollaczek and Khinchine half of a prompt, in the mean."""
    block = {"tp": 2, "batch": 64, "prompt": 8192, "prefill": {"replicas": 1}}
    prompt = run_json(result(block))["ttft_parts_s"]["prefill"]
    config = experiment(
        {**block, "rate": f"{0.5 / prompt!r} Hz"}, latency="2 us", run={"samples": 200_000, "realisations": 1}
    )
    found = run(config)
    assert found.serving is not None
    assert found.serving.prefill_busy == pytest.approx(0.5, rel=1e-3)
    # 200,000 waits that are alike over some ten of them: 1e-9 at six times 2 %.
    assert found.serving.ttft_parts["wait"] == pytest.approx(prompt / 2, rel=0.12)


def test_slow_chips_are_in_the_tail_of_answers():
    quiet, noisy = (result({"tp": 2, "batch": 8}, noise=noise) for noise in (None, NOISE))
    assert quiet.serving is not None
    assert noisy.serving is not None
    assert noisy.realisations == 4
    assert np.ptp(noisy.samples.mean(axis=1)) > 0
    assert noisy.serving.tpot["p99"].value > quiet.serving.tpot["p99"].value


@pytest.fixture(scope="module")
def points():
    return serving_front(experiment({"tp": 4, "batch": 8}, latency="2 us", memory_size="2 GB"))


def test_the_front_is_what_nothing_beats(points):
    assert {each.tp for each in points} == {1, 2, 4, 8}
    for each in points:
        beaten = any(
            other.tpot <= each.tpot
            and other.tokens_per_s_per_chip >= each.tokens_per_s_per_chip
            and (other.tpot, other.tokens_per_s_per_chip) != (each.tpot, each.tokens_per_s_per_chip)
            for other in points
        )
        assert each.is_best is not beaten


def test_larger_batches_take_longer_and_make_more(points):
    for tp in (1, 8):
        own = [each for each in points if each.tp == tp]
        assert [each.batch for each in own] == sorted(each.batch for each in own)
        assert all(one.tpot < other.tpot for one, other in pairwise(own))
        assert own[-1].tokens_per_s_per_chip > 4 * own[0].tokens_per_s_per_chip


def test_the_front_is_drawn(points, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "front.svg"
    plot_serving(file, "test", points)
    assert "tp 8" in file.read_text(encoding="utf-8") or file.stat().st_size > 10_000


def test_only_serving_has_a_front(tmp_path):
    done = CliRunner().invoke(app, ["run", "quickstart", "--plot", str(tmp_path / "x.svg")])
    assert isinstance(done.exception, InputError)
    assert "--plot: expected an experiment with `serving`" in str(done.exception)
