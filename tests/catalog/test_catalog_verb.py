"""`tailstep catalog` as its users see it: through a pipe, in a terminal of 100 columns, as JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mc import catalog

ROOT = Path(__file__).resolve().parents[2]
# The verb alone, so that this test needs no other verb to work.
ALONE = """
import sys, typer
from mc.cli.catalog import catalog
from mc.errors import InputError
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(catalog)
try:
    app()
except InputError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
finally:
    assert "jax" not in sys.modules
"""


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", ALONE, *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_entries_fit_into_100_columns():
    found = run()
    assert found.returncode == 0, found.stderr
    assert all(f"\n{name} " in found.stdout for name in [*catalog.chips(), *catalog.links()])
    assert max(map(len, found.stdout.splitlines())) <= 100
    assert "…" not in found.stdout
    assert "~" in found.stdout


@pytest.mark.parametrize(
    ("kind", "shown", "hidden"), [("chips", "H100", "NVLink-5 "), ("links", "NVLink-5", "H200")]
)
def test_kind(kind, shown, hidden):
    found = run("--kind", kind)
    body = found.stdout.rpartition("\n\n")[0]
    assert f"\n{shown} " in body
    assert f"\n{hidden}" not in body


def test_one_entry_shows_its_sources():
    found = run("NVLink-5", COLUMNS="100")
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split())
    for part in (
        "1.8 TB/s",
        "900 GB/s",
        "both directions added",
        "source: NVIDIA GB200 NVL72",
        "~6 pJ/bit",
        "estimate: not published",
    ):
        assert part in text


def test_json():
    entries = json.loads(run("--json").stdout)
    assert [entry["id"] for entry in entries] == [*catalog.chips(), *catalog.links()]
    assert all(
        ("source" in figure) != ("estimate" in figure)
        for entry in entries
        for figure in entry["figures"].values()
    )
    (h100,) = json.loads(run("--json", "H100").stdout)
    assert h100["kind"] == "chip"
    assert h100["figures"]["peak.bf16"]["value"] == 989e12
    assert h100["figures"]["peak.bf16"]["unit"] == "FLOP/s"
    (nvlink,) = json.loads(run("--json", "NVLink-5").stdout)
    assert (nvlink["duplex"], nvlink["bandwidth_per_direction"]) == ("sum", 9e11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["h100"], "unknown chip or link `h100`; did you mean `H100`?"),
        (["nvlink-5", "--kind", "links"], "unknown link `nvlink-5`; did you mean `NVLink-5`?"),
        (["H100", "--kind", "links"], "unknown link `H100`; expected one of on-die,"),
    ],
)
def test_unknown_name(arguments, message):
    found = run(*arguments)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.startswith(message)
