"""`tailstep import`, as a user meets it: what it understood, what it keeps, what it refuses."""

import contextlib
import importlib
import json
from functools import partial

import pytest

from mc.logs import FORMATS, read_table
from tests.logs.dialects import DIALECTS, Point, write

import_logs = importlib.import_module("mc.cli.import_logs")
TEXT = write([Point(1 << 20, 123.4, 99.5), Point(1 << 30, 12345.6, 20000.0)], DIALECTS["2025"])


@pytest.fixture
def tailstep(tmp_path, monkeypatch, invoke):
    """Runs the command in a folder with `job.log`; returns (exit code, stdout, stderr)."""
    (tmp_path / "job.log").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return partial(invoke, "import")


def test_says_what_it_understood(tailstep):
    code, out, err = tailstep("job.log")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "job.log: nccl-tests, 17 lines, 4 rows",
        "  table 1: all-reduce (all_reduce_perf), 4 ranks on 2 nodes, 1 MiB to 1 GiB, 4 rows",
        "    collective: all-reduce, from the program's name, all_reduce_perf",
        "    ranks: 4, from the 4 ranks that the log lists",
        "    nodes: 2, from the 2 hosts that the log lists",
        "    device: NVIDIA H100, from the ranks that the log lists",
        "    software: NCCL 2.28.7, from the version that nccl-tests states",
        "    iterations: 20, from the settings of the program",
        "note: too few sizes for `tailstep calibrate`, which needs 3 of one collective on one group of ranks; here are 2 at most",
    ]


def test_enough_sizes_need_no_note(tailstep, tmp_path):
    points = [Point(1 << power, 100.0 * power, 99.5 * power) for power in (20, 21, 22)]
    (tmp_path / "three.log").write_text(write(points, DIALECTS["2025"]))
    code, out, _ = tailstep("three.log")
    assert (code, "too few" in out) == (0, False)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl"])
def test_keeps_the_table(tailstep, tmp_path, name):
    code, out, err = tailstep("job.log", "--out", name, "--json", "--nodes", "4")
    assert (code, err) == (0, f"wrote {name}: 4 rows\n")
    described = json.loads(out)
    assert described["rows"] == 4
    assert described["files"][0]["tables"][0]["inferred"]["nodes"] == "given by the user"
    rows = list(read_table(tmp_path / name).rows())
    assert [row["time_s"] for row in rows] == pytest.approx([123.4e-6, 99.5e-6, 12345.6e-6, 20000e-6])
    assert {row["placement"] for row in rows} == {"4x1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.log"], "none.log: no such file"),
        (["."], ".: expected a file of measurements; got a directory"),
        (
            ["job.log", "--format", "nccl"],
            "unknown format `nccl`",
        ),
        (
            ["job.log", "--collective", "allreduce"],
            "--collective: unknown collective `allreduce`; did you mean",
        ),
        (["job.log", "--step-unit", "hours"], "--step-unit: expected s, ms, us or ns; got `hours`"),
        (["job.log", "--out", "rows.xlsx"], "rows.xlsx: expected a name that ends in .parquet, .csv, .jsonl"),
        (["job.log", "--out", "none/rows.csv"], "none/rows.csv: cannot be written: no such directory"),
    ],
)
def test_refuses_in_words(tailstep, arguments, message):
    code, out, err = tailstep(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


def test_long_files_show_how_far_they_are(tailstep, monkeypatch):
    shown = []

    @contextlib.contextmanager
    def progress(label, *, total):
        shown.append((label, total))
        yield lambda count: shown.append(count)

    monkeypatch.setattr(import_logs, "_LONG", 1)
    monkeypatch.setattr("mc.report.progress", progress)
    code, out, err = tailstep("job.log")
    assert (code, err) == (0, "")
    assert out.startswith("job.log: nccl-tests, 17 lines, 4 rows\n")
    assert shown[0] == ("reading (bytes)", len(TEXT))
    # Once to recognise the file and once to read it.
    assert sum(shown[1:]) == 2 * len(TEXT)


def test_help_names_the_formats():
    assert tuple(FORMATS) == import_logs.FORMATS
