"""`tailstep run` as its user meets it: streams, exit codes, JSON, files."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

QUICK = ["--set", "run.samples=2000", "--set", "cluster.noise.pauses=null"]


def as_a_process(*arguments):
    command = [sys.executable, "-m", "mc", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def tailstep(invoke):
    """Runs the command here, where what other tests have compiled is at hand; returns (exit code, stdout, stderr)."""
    return invoke


@pytest.mark.smoke
def test_json_has_its_keys_and_adds_up(tmp_path):
    arguments = ("run", "quickstart", *QUICK, "--json", "--out", str(tmp_path / "run"))
    code, out, err = as_a_process(*arguments)
    assert code == 0, err
    result = json.loads(out)
    step = result["step_time_s"]
    assert {"mean", "p50", "p95", "p99", "p99_9", "ci"} == set(step)
    assert step["p50"] < step["p95"] < step["p99"] <= step["p99_9"]
    low, high = step["ci"]["mean"]
    assert low < step["mean"] < high
    assert sum(result["waterfall_s"].values()) == pytest.approx(step["mean"], rel=1e-9)
    assert {"samples", "seed", "config_hash", "elapsed_s"} <= set(result)
    assert result["samples"] == 2000

    table = pq.read_table(tmp_path / "run" / "steps.parquet")
    assert table.num_rows == 2000
    assert sum(table["step_time_s"].to_pylist()) / 2000 == pytest.approx(step["mean"], rel=1e-6)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["config_hash"] == result["config_hash"]


def test_table_goes_to_stdout(tailstep):
    code, out, err = tailstep("run", *QUICK)
    assert code == 0, err
    for text in (
        "step time",
        "p99.9",
        "straggler wait",
        "ideal network",
        "run again",
        "--set run.samples=2000",
    ):
        assert text in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "nowhere.yaml"], "nowhere.yaml"),
        (["run", "--set", "run.sampels=10"], "did you mean `samples`"),
        (["run", "--set", "plan.ranks=2048"], "2048 ranks asked for, the cluster has 8 x 32 x 4 = 1024"),
        (["run", "--set", "plan.algorithm=bruck"], "bruck"),
        (["run", "--set", "run.samples=0"], "run.samples"),
    ],
)
def test_mistakes_are_told_and_exit_with_2(arguments, text, tailstep):
    # One of them as a process: what is told must not depend on who catches it.
    code, out, err = (as_a_process if text == "bruck" else tailstep)(*arguments)
    assert code == 2
    assert text in err.replace("\n", " ")
    assert "Traceback" not in err
    assert out == ""


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, tailstep):
    (tmp_path / "thesis.tex").write_text("do not overwrite")
    code, _, err = tailstep("run", *QUICK, "--out", str(tmp_path))
    assert code == 2
    assert str(tmp_path) in err.replace("\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
