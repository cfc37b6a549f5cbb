"""`tailstep diff`, as a user meets it."""

import json

import pytest

from tests.cli.test_scale import CLUSTER, TRANSFORMER

EXPERIMENT = """
name: barrier
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
  noise:
    spread: {family: lognormal, median: 1, sigma: 0.05}
    slow_chips: {fraction: 10 %, slowdown: 1.5}
model:
  name: gradients
  compute: {flop: 500 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 100 MB}
plan: {algorithm: ring}
run: {samples: 400, realisations: 4, seed: 5}
"""
FASTER = EXPERIMENT.replace("1 TB/s", "2 TB/s").replace("seed: 5", "seed: 6")


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs `tailstep` beside the files; returns (exit code, stdout, stderr)."""
    files = {"a": EXPERIMENT, "b": FASTER, "little": TRANSFORMER, "cluster": CLUSTER}
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return invoke


def of(each, *names):
    return [each[name] for name in names]


def test_an_experiment_differs_from_itself_by_exactly_nothing(tailstep):
    found = json.loads(tailstep("diff", "a.yaml", "a.yaml", "--json")[1])
    assert found["paired"]
    assert found["changes"] == []
    for each in (*found["step_time_s"].values(), *found["waterfall_s"].values()):
        assert of(each, "difference", "low", "high") == [0.0, 0.0, 0.0]


def test_a_faster_link_shows_in_bandwidth_alone(tailstep):
    """A ring of n moves 2·(n − 1)/n bytes per byte: 175 MB, at 2 instead of 1 TB/s, is 87.5 us less in every step."""
    found = json.loads(tailstep("diff", "a.yaml", "b.yaml", "--json")[1])
    assert found["paired"]
    changed = {each["path"]: of(each, "before", "after") for each in found["changes"]}
    assert changed == {"cluster.tiers.0.link.bandwidth": ["1 TB/s", "2 TB/s"]}
    for name, each in found["waterfall_s"].items():
        if name != "bandwidth":
            assert of(each, "difference", "low", "high") == [0.0, 0.0, 0.0]
    assert of(found["waterfall_s"]["bandwidth"], "low", "high") == pytest.approx([-87.5e-6] * 2, rel=1e-6)
    for each in found["step_time_s"].values():
        assert of(each, "difference", "low", "high") == pytest.approx([-87.5e-6] * 3, rel=1e-3)


def test_kept_runs_of_other_seeds_are_not_paired(tailstep):
    for name in "ab":
        assert tailstep("run", f"{name}.yaml", "--out", name)[0] == 0
    code, out, _ = tailstep("diff", "a", "b")
    assert code == 0
    assert "drawn independently of each other" in " ".join(out.split())
    assert "run.seed" in out
    found = json.loads(tailstep("diff", "a", "a.yaml", "--json")[1])
    assert found["paired"]
    assert found["step_time_s"]["p99"]["difference"] == 0.0


def test_a_transformer_by_its_plan(tailstep):
    code, out, _ = tailstep("diff", "little.yaml", "little.yaml", "--set", "run.samples=1")
    assert code == 0
    assert "the configurations are the same" in out
    assert "below peak" in out


def test_refusals(tailstep, tmp_path):
    (tmp_path / "empty").mkdir()
    assert tailstep("diff", "a.yaml", "empty")[0] == 2
    code, _, error = tailstep("diff", "a.yaml", "empty", "--set", "run.seed=1")
    assert code == 2
    assert "expected two experiment files" in error
    assert tailstep("diff", "a.yaml", "missing.yaml")[0] == 2
