"""The report of a sweep: its curves, its front and its tables hold what the rows hold; folders in every state of repair."""

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.config.load_sweep import load_sweep
from mc.errors import InputError
from mc.sweep.store import FORMAT, KIND, Batch, Store
from mc.sweep.table import Row, failed_row, table_of
from tests.report.pages import assert_sound
from tests.sweep.test_sweep_files import EXPERIMENT

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

GRID = "  grid: {plan.algorithm: [ring, tree], plan.ranks: [8, 16, 32, 64]}\n"


def metrics(cell: int) -> dict[str, float | None]:
    """The mean rises with the cell, the tail falls: all cells are on the front but for the last, which is worst in both."""
    mean, tail = (9.0, 9.0) if cell == 6 else (1.0 + cell / 8, 4.0 - cell / 8)
    return {
        "step_time_mean_s": mean,
        "step_time_p50_s": mean,
        "step_time_p99_s": tail,
        "efficiency": 0.5,
        "straggler_share": 0.1,
    }


def stored(folder, block: str = GRID, batches=((0, 4), (4, 8)), experiment: str = EXPERIMENT):
    (folder.parent / "sweep.yaml").write_text(experiment + block)
    sweep = load_sweep(folder.parent / "sweep.yaml")
    manifest = {
        "kind": KIND,
        "format": FORMAT,
        "name": sweep.name,
        "sweep_hash": "0123456789abcdef",
        "command": "tailstep sweep sweep.yaml",
        "cells": len(sweep),
        "axes": {"; ".join(sweep.paths): len(sweep)},
        "sweep": {},
        "experiment": sweep.document.root.plain(),
    }
    store = Store(folder, manifest)
    store.open(resume=False)
    for start, stop in batches:
        rows = [
            failed_row(cell, "no <b>ring</b>") if cell == 7 else Row(cell, 8, "", 100, 1, metrics(cell))
            for cell in range(start, stop)
        ]
        store.write(Batch(start, stop), table_of(sweep, rows))
    return folder


def report(folder):
    done = CliRunner().invoke(app, ["report", str(folder)])
    if done.exception is not None:
        raise done.exception
    return assert_sound((folder / "report.html").read_text(encoding="utf-8"))


def test_front_best_and_failures(tmp_path):
    seen = report(stored(tmp_path / "kept"))
    front, best, failures = seen.tables[:3]
    assert [row[0] for row in front[1:]] == ["0", "1", "2", "3", "4", "5"]
    assert front[0][:5] == ["cell", "plan.algorithm", "plan.ranks", "mean", "p99"]
    assert front[2][:5] == ["1", "ring", "16", "1.12 s", "3.88 s"]
    assert [row[0] for row in best[1:]] == ["0", "1", "2", "3", "4", "5", "6"]
    assert failures[1:] == [["7", "no <b>ring</b>"]]
    # Steps, shares and doublings along rank counts, and the front.
    assert seen.tags.count("svg") == 4
    labels = [text for texts in seen.svg_texts for text in texts]
    for each in ("chips", "step time, ms", "of the step, %", "mean, ms", "p99, ms", "algorithm ring, p50"):
        assert each in labels


def test_quantities_along_the_bottom_have_their_unit(tmp_path):
    seen = report(stored(tmp_path / "kept", "  grid: {model.exchange.size: [1 MB, 2 MB, 4 MB]}\n", [(0, 3)]))
    assert "model.exchange.size, B" in seen.svg_texts[0]
    assert seen.tables[0][1][:2] == ["0", "10⁶ B"]


def test_what_is_missing_or_damaged_is_counted(tmp_path):
    folder = stored(tmp_path / "kept", batches=[(0, 2), (2, 4)])
    part = next(folder.glob("cells-0000000002*"))
    part.write_bytes(part.read_bytes()[:100])
    texts = report(folder).texts
    assert texts[texts.index("missing") + 1] == "6"


def test_words_alone_and_one_cell_have_no_curves(tmp_path):
    seen = report(stored(tmp_path / "a", "  grid: {plan.algorithm: [ring, tree]}\n", [(0, 2)]))
    assert seen.tags.count("svg") == 1
    assert report(stored(tmp_path / "b", "  grid: {plan.ranks: [8]}\n", [(0, 1)])).tags.count("svg") == 1


def test_many_curves_are_left_out(tmp_path):
    block = "  grid: {plan.ranks: [8, 16], run.seed: [1, 2, 3, 4, 5, 6, 7, 8]}\n"
    assert report(stored(tmp_path / "kept", block, [(0, 2)])).tags.count("svg") >= 1


def test_a_hostile_experiment_stays_text(tmp_path):
    hostile = EXPERIMENT.replace(
        "name: small\ncluster", "name: '<script>alert(1)</script>\"onload=x'\ncluster", 1
    )
    seen = report(stored(tmp_path / "kept", experiment=hostile))
    assert "".join(seen.texts).count("<script>alert(1)</script>") >= 2


def test_a_sweep_without_cells_is_refused(tmp_path):
    with pytest.raises(InputError, match="expected cells of the sweep; got none"):
        report(stored(tmp_path / "kept", batches=[]))
