"""Cells that train or serve: arrays give what a run of each cell without noise gives, and what cannot be is listed."""

import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config import NoiseConfig
from mc.config.load_sweep import check_cells, load_sweep
from mc.document import ConfigError
from mc.experiment import run
from mc.sweep.batch import batches_of
from mc.sweep.quiet_transformer import FEW
from mc.sweep.sweep import here

TRAINING = """\
name: little
cluster:
  name: two nodes
  chip: H100
  tiers:
    - {name: node, link: NVLink-4, fan_out: 8}
    - {name: net, link: InfiniBand-NDR, fan_out: 2}
model: {name: little, transformer: {layers: 4, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000}}
plan: {tp: 8, pp: 1, dp: 2, micro_batch: 1, global_batch: 8, sequence_length: 1024}
sweep:
  samples: 0
"""
GRID = """\
  grid:
    cluster.tiers.1.link.bandwidth: [10 GB/s, 50 GB/s, 100 GB/s, 400 GB/s]
    cluster.chip.memory_bandwidth: [1 TB/s, 3.35 TB/s]
"""


@pytest.fixture
def load(tmp_path):
    def of(text):
        (tmp_path / "sweep.yaml").write_text(text)
        return load_sweep(tmp_path / "sweep.yaml")

    return of


def rows_of(sweep):
    return [
        row for _, table in here(sweep, batches_of(sweep), lambda count: None) for row in table.to_pylist()
    ]


def quiet(config, samples=1):
    once = config.run.model_copy(update={"samples": samples, "realisations": 1})
    cluster = config.cluster.model_copy(update={"noise": NoiseConfig()})
    return run(config.model_copy(update={"cluster": cluster, "run": once}))


def test_cells_of_training_are_runs_without_noise(load):
    sweep = load(TRAINING + GRID)
    rows = rows_of(sweep)
    assert len(rows) == FEW  # as many as arrays take
    for cell in (0, 5):
        wanted = quiet(sweep.experiment(cell))
        # A run reads its prices from tables, within 0.2 %.
        assert rows[cell]["step_time_mean_s"] == pytest.approx(float(wanted.samples[0, 0]), rel=2e-3)
        assert wanted.training is not None
        assert rows[cell]["mfu"] == pytest.approx(wanted.training.mfu.value, rel=2e-3)
        assert rows[cell]["memory_B"] == wanted.training.memory_bytes["total"]
    for row in rows:
        assert row["tokens_per_s"] == pytest.approx(8 * 1024 / row["step_time_mean_s"], rel=1e-6)
        assert row["tokens_per_s_per_chip"] == pytest.approx(row["tokens_per_s"] / 16, rel=1e-6)
    # More of either is never slower, and four times the time of what is exchanged is seen.
    for slow, fast in [(row, row + 2) for row in range(6)] + [(row, row + 1) for row in range(0, 8, 2)]:
        assert rows[fast]["step_time_mean_s"] <= rows[slow]["step_time_mean_s"] * (1 + 1e-6)
    assert rows[0]["step_time_mean_s"] > rows[6]["step_time_mean_s"]


def test_plans_that_cannot_be_are_listed_or_refused(tmp_path):
    text = TRAINING.replace("dp: 2, ", "").replace("global_batch: 8", "global_batch: 16")
    path = tmp_path / "sweep.yaml"
    path.write_text(text + "  grid: {plan.tp: [3, 8]}\n")
    with pytest.raises(ConfigError, match=r"plan\.tp"):
        check_cells(load_sweep(path))
    path.write_text(text + "  impossible: list\n  grid: {plan.tp: [3, 8]}\n")
    ran = CliRunner().invoke(app, ["sweep", str(path), "--json"])
    assert ran.exit_code == 3
    said = json.loads(ran.stdout)
    assert [each["cell"] for each in said["failed"]] == [0]
    assert "tp" in said["failed"][0]["error"]


def test_cells_of_serving_are_runs_without_noise(load):
    text = TRAINING.replace(
        "plan: {tp: 8, pp: 1, dp: 2, micro_batch: 1, global_batch: 8, sequence_length: 1024}\n",
        "serving: {tp: 8, prompt: 512, output: 64, batch: 4}\n",
    )
    sweep = load(text + "  grid: {serving.batch: [4, 16]}\n")
    for cell, row in enumerate(rows_of(sweep)):
        found = quiet(sweep.experiment(cell), samples=4000).serving
        assert found is not None
        assert row["batch"] == found.batch == (4, 16)[cell]
        # Nothing is random but which step a prompt comes in: the mean, within six standard errors (false alarms: 2e-9).
        drawn = found.tpot["mean"]
        assert abs(row["tpot_mean_s"] - drawn.value) < 6 * (drawn.high - drawn.low) / (2 * 1.96)
        # In a sweep without noise prompts wait for no other.
        assert row["ttft_mean_s"] == pytest.approx(found.ttft_parts["prefill"], rel=1e-6)
        assert row["tokens_per_s"] == pytest.approx(row["batch"] / row["tpot_mean_s"] * 64 / 63, rel=1e-6)
