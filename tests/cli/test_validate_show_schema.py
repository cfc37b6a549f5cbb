"""`tailstep validate`, `show` and `schema`, as a user meets them: streams, exit codes, and no JAX."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mc.config import config_hash, json_schema, load_experiment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tailstep(tmp_path):
    """Runs the command in an empty folder."""

    def run(*arguments, flags=()):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "120"}
        command = [sys.executable, *flags, "-m", "mc", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


QUICKSTART = str(ROOT / "configs" / "quickstart.yaml")


def test_validate_says_ok_and_what_it_found(tailstep):
    cluster = str(ROOT / "configs" / "clusters" / "dgx-h100-superpod.yaml")
    done = tailstep("validate", QUICKSTART, cluster)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{QUICKSTART}: ok (experiment)\n{cluster}: ok (cluster)\n"


def test_validate_takes_what_serves_and_asks_for_its_memory(invoke):
    # In this process, where JAX is.
    file = "configs/inference/llama3-70b-8xh100.yaml"
    for keys, code, text in (
        ((), 0, f"{file}: ok (experiment)"),
        (("--set", "serving.batch=5000"), 2, f"{file}: serving.batch: expected requests that fit into 72 GB"),
    ):
        found, *told = invoke("validate", file, *keys)
        assert found == code
        assert text in "".join(told)


def test_validate_lists_every_problem_and_goes_on_to_the_next_file(tailstep, tmp_path):
    (tmp_path / "bad.yaml").write_text("ranks: 0\nalgorithm: rnig\n")
    (tmp_path / "good.yaml").write_text("ranks: all\n")
    done = tailstep("validate", "bad.yaml", "good.yaml", "nope.yaml")
    assert done.returncode == 2
    assert done.stdout == "good.yaml: ok (plan)\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "bad.yaml:1:8: ranks: expected `all` or a whole number of at least 1; got 0"
    assert lines[1].startswith("bad.yaml:2:12: algorithm: unknown name `rnig`; did you mean `ring`?")
    assert lines[2] == "nope.yaml: no such file"
    assert len(lines) == 3


def test_validate_takes_the_kind_and_overrides(tailstep, tmp_path):
    (tmp_path / "plan.yaml").write_text("ranks: all\n")
    done = tailstep("validate", "plan.yaml", "--kind", "model")
    assert done.returncode == 2
    assert "plan.yaml:1:1: name: missing key; `name` has to be given" in done.stderr
    done = tailstep("validate", "plan.yaml", "--set", "ranks=-3")
    assert done.returncode == 2
    assert done.stderr == "--set ranks=-3: ranks: expected `all` or a whole number of at least 1; got -3\n"
    assert tailstep("validate", "plan.yaml", "--kind", "clster").returncode == 2


def test_validate_takes_calibrations(invoke, tmp_path):
    def validate(text):
        (tmp_path / "fit.yaml").write_text(text)
        code, out, err = invoke("validate", str(tmp_path / "fit.yaml"))
        return code, (out + err).replace(str(tmp_path), "")

    (tmp_path / "steps.csv").write_text("ranks,step_time_s\n8,0.1\n")
    good = "experiment: measured-job\ncalibration: {data: [steps.csv]}\n"
    assert validate(good) == (0, "/fit.yaml: ok (calibration)\n")
    code, told = validate(good.replace("steps", "stops"))
    assert (code, told) == (2, "/fit.yaml:2:22: calibration.data.0: no such file: `/stops.csv`\n")
    code, told = validate(good.replace("measured-job", "mesured-job"))
    assert code == 2
    assert "did you mean `measured-job`?" in told
    code, told = validate(good.replace("data", "date"))
    assert code == 2
    assert "/fit.yaml:2:15: calibration.date: unknown key; did you mean `data`?" in told


def test_show_prints_a_configuration_that_reloads_equal(tailstep, tmp_path):
    done = tailstep("show", QUICKSTART, "--set", "plan.ranks=128")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "resolved.yaml").write_text(done.stdout)
    config = load_experiment(tmp_path / "resolved.yaml")
    assert config == load_experiment(QUICKSTART, ["plan.ranks=128"])
    assert done.stdout.startswith(f"# experiment {config_hash(config)}\n")


def test_show_without_a_file_shows_the_quickstart(tailstep):
    done = tailstep("show", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "quickstart"


def test_show_refuses_without_a_traceback(tailstep, tmp_path):
    (tmp_path / "bad.yaml").write_text("name: x\nname: y\n")
    done = tailstep("show", "bad.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bad.yaml:2:1: name: duplicate key; it was given in line 1 already\n"


@pytest.mark.parametrize("kind", ["cluster", "experiment", "calibration"])
def test_schema_prints_the_schema(kind, tailstep):
    done = tailstep("schema", kind)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json_schema(kind)


def test_schema_refuses_an_unknown_kind(tailstep):
    done = tailstep("schema", "clutser")
    assert (done.returncode, done.stdout) == (2, "")
    assert "clutser" in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("validate", QUICKSTART), ("show",), ("schema",)])
def test_jax_is_not_imported(arguments, tailstep):
    done = tailstep(*arguments, flags=("-X", "importtime"))
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert ("pydantic" in imported) == (arguments != ("--help",))
    assert not imported & {"jax", "jaxlib", "equinox", "numpy", "scipy"}
