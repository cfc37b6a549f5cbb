"""`tailstep mitigations`, as a user meets it."""

import json
from functools import partial

import pytest

EXPERIMENT = """
name: barrier
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
  noise:
    jitter: {family: exponential, mean: 1 ms}
    slow_chips: {fraction: 10 %, slowdown: 1.5}
model:
  name: gradients
  compute: {flop: 250 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 100 MB}
plan: {algorithm: ring}
run: {samples: 400, realisations: 20, seed: 5}
"""


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs `tailstep mitigations` on the experiment; returns (exit code, stdout, stderr)."""
    (tmp_path / "a.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return partial(invoke, "mitigations", "a.yaml")


def test_what_is_tried_is_ranked_by_its_tail(tailstep, tmp_path):
    tries = ("mitigations.drop_slowest=2", "plan.ranks=6; mitigations.backup_workers=2")
    code, out, err = tailstep(
        *(part for each in tries for part in ("--try", each)), "--json", "--plot", "m.svg"
    )
    assert code == 0, err
    found = json.loads(out)
    assert (tmp_path / "m.svg").stat().st_size > 0
    rows = {each["name"]: each for each in found["tried"]}
    assert set(rows) == {"drop_slowest=2", "plan.ranks=6, backup_workers=2"}
    dropped, backed = rows.values()
    assert [each["step_time_s"]["p99"] for each in found["tried"]] == sorted(
        each["step_time_s"]["p99"] for each in rows.values()
    )
    base = found["step_time_s"]
    for each, share in ((rows["drop_slowest=2"], 6 / 8), (rows["plan.ranks=6, backup_workers=2"], 6 / 8)):
        mean, p99 = each["step_time_s"]["mean"], each["change_s"]["p99"]
        # Two of eight are lost: what gets done is six of eight per shorter step.
        assert each["throughput"][0] == pytest.approx(share * base["mean"][0] / mean)
        assert p99[1] <= p99[0] <= p99[2] < 0
        assert sum(each["waterfall_s"].values()) == pytest.approx(mean, rel=1e-5)
        assert each["chips"] == 8
    assert {dropped["useful"], backed["useful"]} == {0.75, 1.0}


def test_what_cannot_be_is_refused(tailstep):
    code, _, err = tailstep("--try", "mitigations.drop_slowest=8")
    assert code == 2
    assert "mitigations.drop_slowest: expected fewer than the 8 ranks that there are; got 8" in err
