"""Round trip of a run, what a reader finds with pyarrow alone, and what must never be in the files."""

import dataclasses
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mc.errors import InputError
from mc.estimate import estimate
from mc.results import provenance, read_run, write_run
from tests.results.example import example_result


def test_round_trip(tmp_path):
    result = example_result()
    paths = write_run(tmp_path / "new" / "run", result)
    assert {name: path.name for name, path in paths.items()} == {name: name for name in paths}
    back = read_run(tmp_path / "new" / "run").result
    for field in dataclasses.fields(result):
        expected, found = getattr(result, field.name), getattr(back, field.name)
        if field.name == "samples":
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, expected)
        elif field.name == "parts":
            assert list(found) == list(expected)
            for part in expected:
                np.testing.assert_array_equal(found[part], expected[part])
        else:
            assert found == expected, field.name


def test_an_infinite_bound_survives_as_null(tmp_path):
    result = example_result()
    assert result.estimates.p99_9.high == np.inf
    paths = write_run(tmp_path, result)
    rows = {row["metric"]: row for row in pq.read_table(paths["summary.parquet"]).to_pylist()}
    assert rows["step_time.p99_9"]["high"] is None
    assert read_run(tmp_path).result.estimates.p99_9.high == np.inf


def test_scalar_parts_fill_their_column(tmp_path):
    result = example_result()
    write_run(tmp_path, dataclasses.replace(result, parts=result.parts | {"bandwidth": np.float32(3e-5)}))
    np.testing.assert_array_equal(read_run(tmp_path).result.parts["bandwidth"], result.parts["bandwidth"])


def test_readable_by_pyarrow_alone(tmp_path):
    """In a process that never imports this package: columns, numbers, and where they come from."""
    write_run(tmp_path, example_result())
    script = """
import json, sys
import pyarrow.parquet as pq
steps, summary = pq.read_table("steps.parquet"), pq.read_table("summary.parquet")
manifest = json.load(open("manifest.json"))
assert all(json.loads(t.schema.metadata[b"tailstep_manifest"]) == manifest for t in (steps, summary))
assert "mc" not in sys.modules and "jax" not in sys.modules
rows = {row["metric"]: row for row in summary.to_pylist()}
mean = rows["step_time.mean"]
print(json.dumps([steps.column_names, steps.num_rows, mean["value"], mean["unit"],
                  sum(steps["step_time_s"].to_pylist()) / steps.num_rows, summary.column_names]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    columns, count, mean, unit, mean_of_steps, tidy = json.loads(done.stdout)
    parts = ["compute_s", "straggler_wait_s", "bandwidth_s", "latency_floor_s", "congestion_s"]
    assert columns == ["realisation", "step", "step_time_s", *parts]
    assert (count, unit) == (200, "s")
    assert mean == pytest.approx(mean_of_steps, rel=1e-12)
    assert tidy == ["metric", "value", "low", "high", "unit"]


def test_rows_are_in_the_order_of_the_samples(tmp_path):
    result = example_result(realisations=3, steps=5)
    steps = pq.read_table(write_run(tmp_path, result)["steps.parquet"]).to_pydict()
    for realisation, step, time in zip(
        steps["realisation"], steps["step"], steps["step_time_s"], strict=True
    ):
        assert time == result.samples[realisation, step]


def test_manifest_says_how_to_run_again(tmp_path):
    result = example_result()
    manifest = json.loads(write_run(tmp_path, result)["manifest.json"].read_text())
    assert manifest["command"] == result.command
    assert manifest["config"] == result.resolved_yaml
    assert manifest["config_hash"] == result.config_hash
    assert manifest["random"] == {"seed": 7, "key_implementation": "threefry2x32", "method": "exact"}
    assert manifest["samples"] == {"steps": 200, "realisations": 4, "confidence": 0.95}
    assert manifest["device"] == {"backend": "cpu", "kind": "cpu", "count": 1, "x64": False}
    assert manifest["time"]["started"] == "2026-12-02T12:00:00.250000Z"
    assert manifest["software"]["python"] == platform.python_version()
    assert manifest["software"]["packages"]["numpy"] == np.__version__
    assert set(manifest["software"]["packages"]) == {"jax", "jaxlib", "equinox", "numpy", "pyarrow"}


def test_nothing_private_is_kept(tmp_path, monkeypatch):
    home = tmp_path / "home" / "alice"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TAILSTEP_TEST_SECRET", "correct-horse-battery")
    result = example_result(
        command=f"tailstep run {home}/x.yaml --out {home}",
        resolved_yaml=f"file: {home}/a.csv\nother: {home}2/b.csv\n",
    )
    folder = tmp_path / "run"
    text = b"".join(path.read_bytes() for path in write_run(folder, result).values())
    assert b"correct-horse-battery" not in text
    assert socket.gethostname().encode() not in text
    manifest = read_run(folder).manifest
    assert manifest["command"] == "tailstep run ~/x.yaml --out ~"
    # Another folder whose name only begins the same is left alone.
    assert manifest["config"] == f"file: ~/a.csv\nother: {home}2/b.csv\n"


def test_writing_imports_no_jax(tmp_path):
    script = (
        "import sys; from tests.results.example import example_result; from mc.results import write_run\n"
    )
    script += "write_run(sys.argv[1], example_result()); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])


def test_estimates_can_be_made_again_from_the_steps(tmp_path):
    write_run(tmp_path, example_result())
    back = read_run(tmp_path).result
    assert estimate(back.samples) == back.estimates


def test_parts_with_the_same_column_are_refused(tmp_path):
    result = example_result()
    with pytest.raises(ValueError, match="expected parts with different column names; got 'Compute'"):
        write_run(
            tmp_path, dataclasses.replace(result, parts=result.parts | {"Compute": result.parts["compute"]})
        )


def git(folder, *arguments):
    names = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", "-C", str(folder), *names, *arguments], check=True, capture_output=True)


def test_commit_and_dirty_flag(tmp_path):
    git(tmp_path, "init")
    assert provenance.commit(tmp_path) is None
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "one")
    clean = provenance.commit(tmp_path)
    assert clean is not None
    assert (len(clean["commit"]), clean["dirty"]) == (40, False)
    (tmp_path / "file").write_text("2")
    assert provenance.commit(tmp_path) == {"commit": clean["commit"], "dirty": True}


def test_commit_of_somebody_elses_checkout_is_not_ours(tmp_path):
    git(tmp_path, "init")
    inside = tmp_path / "venv" / "site-packages"
    inside.mkdir(parents=True)
    assert provenance.commit(inside) is None


def test_no_git_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert provenance.commit(tmp_path) is None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "got no readable manifest.json in it"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "got no readable manifest.json in it"),
        (
            lambda folder: (folder / "manifest.json").write_text('{"kind": "other"}'),
            "got no readable manifest.json in it",
        ),
        (lambda folder: (folder / "steps.parquet").unlink(), "expected a complete run folder"),
        (lambda folder: (folder / "steps.parquet").write_bytes(b"PAR1"), "expected a complete run folder"),
    ],
)
def test_a_damaged_folder_is_an_input_error(tmp_path, damage, message):
    write_run(tmp_path, example_result())
    damage(tmp_path)
    with pytest.raises(InputError) as error:
        read_run(tmp_path)
    assert message in str(error.value)


def test_files_of_different_runs_are_told_apart(tmp_path):
    write_run(tmp_path / "a", example_result())
    write_run(tmp_path / "b", example_result(seed=8))
    os.replace(tmp_path / "b" / "steps.parquet", tmp_path / "a" / "steps.parquet")
    with pytest.raises(
        InputError, match=r"expected the same run as in manifest\.json; got a file of another run"
    ):
        read_run(tmp_path / "a")


def test_a_missing_folder_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="expected a folder with a finished run"):
        read_run(tmp_path / "nowhere")
