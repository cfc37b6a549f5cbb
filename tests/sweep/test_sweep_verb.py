"""`tailstep sweep` and `tailstep merge`, as a user meets them."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

EXPERIMENT = """
name: small
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  tiers:
    - {name: node, link: {bandwidth: 1 TB/s, duplex: each, latency: 1 us}, fan_out: 8}
  noise: {spread: {family: lognormal, median: 1, sigma: 2 %}}
model:
  name: gradients
  compute: {flop: 5 GFLOP, format: bf16, efficiency: 50 %}
  exchange: {collective: all-reduce, size: 10 MB}
plan: {algorithm: ring}
run: {samples: 200}
sweep:
  grid:
    plan.ranks: [2, 4, 8]
"""


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs `tailstep` beside `small.yaml`; returns (exit code, stdout, stderr)."""
    (tmp_path / "small.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return invoke


def test_it_says_how_much_there_is_to_do_and_then_what_is_best(tailstep):
    code, out, err = tailstep("sweep", "small.yaml", "--out", "kept")
    assert code == 0
    assert err.startswith("sweep: 3 cells")
    assert "best of 3 cells by step_time_mean_s" in out
    assert "kept in kept" in out
    (part,) = Path("kept").glob("*.parquet")
    rows = pq.read_table(part).to_pylist()
    assert [row["plan.ranks"] for row in rows] == [2, 4, 8]
    means = [row["step_time_mean_s"] for row in rows]
    assert means == sorted(means)
    assert all(sum(row["histogram"]) == row["samples"] == 200 for row in rows)


def test_it_says_what_common_random_numbers_are_worth(tailstep):
    code, out, _ = tailstep("sweep", "small.yaml", "--json", "--out", "kept")
    assert code == 0
    told = json.loads(out)["variance_reduction"]
    (part,) = Path("kept").glob("*.parquet")
    own = [row["variance_reduction"] for row in pq.read_table(part).to_pylist()[1:]]
    assert told["cells"] == len(own) == 2
    assert told["median"] == pytest.approx(sum(own) / 2)
    assert min(own) < told["p10"] < told["p90"] < max(own)


def test_a_dry_run_lists_the_cells_and_makes_nothing(tailstep, tmp_path):
    code, out, _ = tailstep("sweep", "small.yaml", "--dry-run", "--out", "kept")
    assert code == 0
    assert out.splitlines() == ["0: plan.ranks=2", "1: plan.ranks=4", "2: plan.ranks=8"]
    assert not (tmp_path / "kept").exists()


def test_two_objectives_give_the_front(tailstep):
    arguments = ("--json", "--objective", "step_time_mean_s", "--objective=-ranks")
    code, out, _ = tailstep("sweep", "small.yaml", *arguments)
    found = json.loads(out)
    assert code == 0
    assert [row["plan.ranks"] for row in found["pareto"]] == [2, 4, 8]


def test_json_has_the_best_cell(tailstep):
    code, out, _ = tailstep("sweep", "small.yaml", "--json", "--objective=-ranks")
    found = json.loads(out)
    assert (code, found["cells"], found["samples"]) == (0, 3, 600)
    assert found["best"]["plan.ranks"] == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "3/2"], "--shard: expected I/N"),
        (["--resume"], "--resume: expected --out"),
        (["--objective", "speed"], "--objective: expected one of"),
        (["--cell", "3"], "--cell: expected a cell from 0 to 2; got 3"),
        (["--set", "sweep.grid.plan\\.ranks=[9]"], "small.yaml"),
    ],
)
def test_refusals(tailstep, arguments, message):
    code, _, err = tailstep("sweep", "small.yaml", *arguments)
    assert code == 2
    assert message in err or "--set" in err
    assert "Traceback" not in err
