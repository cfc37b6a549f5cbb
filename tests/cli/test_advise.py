"""`tailstep advise`, as a user meets it: tables, JSON, pictures, and refusals."""

import json
from functools import partial

import pytest

TEXT = """
name: little
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}, memory_bandwidth: 1 TB/s, memory_size: 80 GB}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 4}
  noise: {jitter: {family: exponential, mean: 1 ms}}
model:
  name: little
  transformer: {layers: 4, hidden: 1024, heads: 4, kv_heads: 4, ffn: 4096, vocab: 32000}
plan: {tp: 2, global_batch: 4, sequence_length: 512}
"""


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs `tailstep advise` beside the file; returns (exit code, stdout, stderr)."""
    (tmp_path / "little.yaml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return partial(invoke, "advise")


def test_plans_are_counted_and_ranked(tailstep, tmp_path):
    arguments = ("--count", "2", "--samples", "40", "--json", "--plot", "front.svg")
    code, out, _ = tailstep("little.yaml", "--plans", *arguments)
    found = json.loads(out)
    assert code == 0
    told = sum(found["refused"].values()) + sum(found["pruned"].values()) + found["evaluated"]
    assert found["plans"] == told
    first, second = (each["step_time_s"] for each in found["best"])
    assert first <= second
    assert first <= found["written"]["step_time_s"]
    tails = [each["p99_s"]["value"] for each in found["by_p99"]]
    assert tails == sorted(tails)
    # Jitter only adds.
    assert all(each["mean_s"]["value"] > each["step_time_s"] for each in found["by_p99"])
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")


def test_the_best_plan_by_its_tail(tailstep):
    arguments = ("--count", "1", "--samples", "8", "--by", "p99", "--json")
    code, out, err = tailstep("little.yaml", "--plans", *arguments, "--set", "cluster.noise.jitter.mean=1 us")
    assert code == 0, err
    found = json.loads(out)
    best = found["by_p99"][0]
    assert 1 <= len(found["by_p99"]) <= found["drawn"] <= found["evaluated"]
    assert best["plan"] == found["best"][0]["plan"]
    assert best["p99_s"]["value"] > best["step_time_s"]
    assert found["shorter_with_noise"] == 0
    code, _, err = tailstep("little.yaml", "--plans", "--by", "mean")
    assert (code, "--by: expected p99 with --plans; got mean" in err) == (2, True)


def test_tables_name_the_file_and_the_figures(tailstep):
    code, out, _ = tailstep("little.yaml", "--plans", "--count", "1", "--set", "plan.recompute=[norms]")
    assert code == 0
    assert "[norms]" in out
    assert "combinations:" in out
    assert "than the plan of the file" in out
    code, out, _ = tailstep("little.yaml")
    assert code == 0
    assert "peak, bf16" in out


def test_a_model_without_plans_is_refused(tailstep):
    for arguments in ((), ("--plans",)):
        code, _, err = tailstep("quickstart", *arguments)
        assert code == 2
        assert "expected a model with a `transformer`" in err
