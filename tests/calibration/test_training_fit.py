"""A transformer fitted to steps at several numbers of ranks: where nothing but products takes time, the MFU is what they reach."""

import json

import pytest
from typer.testing import CliRunner

from mc.calibration import CalibrationError
from mc.calibration.training_rows import sized_rows, training_rows
from mc.cli.app import app
from mc.config import load_experiment
from mc.config.hold_out import parse_hold_out
from mc.logs import Hints, read_logs

REACHED = 0.6
# Kernels, hosts, memory and links cost nothing, and products are large, so a step takes its FLOP over what they reach of the peak.
EXPERIMENT = """
name: nothing but products
cluster:
  name: free links
  chip:
    peak: {bf16: 100 TFLOP/s}
    memory_size: 1e9 GB
    memory_bandwidth: 1e9 TB/s
    efficiency: {matmul: {bf16: 0.5}, attention: 0.5, half_area: 0, half_depth: 0, kernel: 0 s, launch: 0 s,
                 collective_launch: 0 s, pass_launch: 0 s, wait: 0 s, step: 0 s}
  tiers: [{name: net, fan_out: 4, link: {bandwidth: 1e9 GB/s, duplex: each, latency: 0 s}}]
model:
  name: small
  transformer: {layers: 2, hidden: 32768, heads: 256, ffn: 131072, vocab: 32768}
plan: {ranks: 2, micro_batch: 8, global_batch: 32, sequence_length: 2048}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("training")
    (found / "job.yaml").write_text(EXPERIMENT)
    (found / "mfu.csv").write_text(f"gpus,mfu\n1,{REACHED}\n2,{REACHED}\n8,{REACHED}\n")
    (found / "fit.yaml").write_text(
        "experiment: job.yaml\ncalibration:\n  data: [mfu.csv]\n  hold_out: ranks > 2\n  forecast: [16]\n  starts: 2\n"
        "  free: [{path: [cluster.chip.efficiency.matmul.bf16, cluster.chip.efficiency.attention]}]\n"
    )
    return found


def invoked(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_fit_to_mfu_finds_what_products_reach(folder):
    """And the file that it writes runs at this MFU, on ranks that were not fitted as well."""
    kept = ("--results", folder / "kept", "--plot", folder / "fit.svg")
    done = invoked("calibrate", folder / "fit.yaml", "--json", "--out", folder / "out.yaml", *kept)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (figure,) = found["figures"]
    # The prior's centre of 0.5 draws it by less than half a per cent.
    assert figure["value"] == pytest.approx(REACHED, rel=5e-3)
    assert figure["low"] < REACHED < figure["high"]
    assert figure["known_from"] == "data"
    assert found["outcome"] == "flat"
    assert [each["held_out"] for each in found["sizes"]] == [False, False, True]
    assert found["held_out"]["most"] < 5e-3
    # Weak scaling, and nothing to wait for: a step takes as long on any number of ranks.
    (forecast,) = found["forecasts"]
    assert forecast["time"][1] == pytest.approx(found["sizes"][2]["measured"], rel=5e-3)
    assert forecast["time"][0] < forecast["time"][1] < forecast["time"][2]
    ran = invoked("run", folder / "out.yaml", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["mfu"] == pytest.approx(REACHED, rel=5e-3)
    assert invoked("report", folder / "kept", "--out", folder / "page.html").exit_code == 0


def rows_of(folder, table, mode="weak", rule="none"):
    (folder / "own.csv").write_text(table)
    config = load_experiment(str(folder / "job.yaml"))
    found = read_logs([str(folder / "own.csv")], Hints())
    rows = training_rows(found.table, found.files)
    return sized_rows(config, rows, mode, parse_hold_out(rule))


@pytest.mark.parametrize(
    ("table", "mode", "batches"),
    [
        ("gpus,step_time_s\n2,1\n8,1\n", "weak", [32, 128]),
        ("gpus,step_time_s\n2,1\n4,1\n", "strong", [32, 32]),
        ("gpus,gbs,step_time_s\n2,16,1\n8,64,1\n", "weak", [16, 64]),
        # Two ranks are one replica, which has sixteen sequences.
        ("gpus,tp,step_time_s\n2,2,1\n8,2,1\n", "weak", [16, 64]),
    ],
)
def test_what_changes_with_the_number_of_ranks(folder, table, mode, batches):
    found = rows_of(folder, table, mode)
    assert [each.config.plan.global_batch for each in found] == batches
    assert [each.config.ranks for each in found] == [each.row.ranks for each in found]


def test_steps_of_one_run_count_by_their_mean(folder):
    (found,) = rows_of(folder, "step,gpus,step_time_s\n0,2,1.0\n1,2,1.5\n2,2,3.5\n")
    assert (found.time, found.row.steps) == (2.0, 3)


@pytest.mark.parametrize(
    ("table", "mode", "rule", "text"),
    [
        (
            "gpus,tp,step_time_s\n6,4,1\n",
            "weak",
            "none",
            "expected a whole number of replicas, each of 4 ranks",
        ),
        ("gpus,dp,step_time_s\n8,3,1\n", "weak", "none", "8 ranks: .*dp"),
        ("gpus,step_time_s\n16,1\n", "strong", "none", "expected whole micro-batches"),
        (
            "gpus,mfu\n2,0.5\n4,0.5\n",
            "weak",
            "ranks > 8",
            "a rule that some rows meet and some do not; none do",
        ),
        ("gpus,mfu\n2,0.5\n4,n/a\n", "weak", "none", "own.csv:3: expected step times and nothing else"),
        ("gpus,mfu\n2,0.5\n4,0.5\n", "weak", "size > 1 MiB", "a rule on `ranks`"),
        ("gpus,step_time_s\n2,1\n4,4000\n", "weak", "none", "are all in one unit"),
    ],
)
def test_tables_that_say_nothing_are_refused(folder, table, mode, rule, text):
    with pytest.raises(CalibrationError, match=text):
        rows_of(folder, table, mode, rule)


def test_figures_that_change_nothing_are_refused(folder):
    path = "cluster.chip.efficiency.memory"
    done = invoked(
        "calibrate", folder / "job.yaml", "--data", folder / "mfu.csv", "--free", path, "--starts", "1"
    )
    assert isinstance(done.exception, CalibrationError)
    assert "which change nothing" in str(done.exception)
