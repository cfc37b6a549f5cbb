"""The map of winners: a cell against the comparison that it is made of, and what the command writes."""

import json

import numpy as np
import pytest

from experiments import winners
from experiments.winners import Cell, main, plot, study
from mc.collectives import Row
from mc.exchange import SampledTimes, Way

CELLS = [
    Cell(jitter, ranks, size, "ring", "k-ary", "binomial", 0.5)
    for jitter in ("measured", "30 times")
    for ranks in (8, 16)
    for size in (1024.0, 4096.0)
]


def test_a_cell_names_the_best_by_each_objective(monkeypatch):
    def way(name, floor, times):
        row = Row(name, "none", floor, None, None, 1, 0.0)
        return Way(row, (), SampledTimes(floor, np.asarray(times), "schedule"))

    # By floor, by mean, and by p99 in turn.
    found = [
        way("a", 1.0, [1.0] * 98 + [90.0] * 2),
        way("b", 2.0, [2.0] * 98 + [8.0] * 2),
        way("c", 3.0, [4.0] * 100),
    ]
    monkeypatch.setattr(winners, "compare", lambda *_, **__: found)
    (cell,) = study((16,), (1024.0,), {"measured": 1.0})
    assert (cell.floor, cell.mean, cell.p99) == ("a", "b", "c")
    assert cell.lost == pytest.approx(90 / 4 - 1)


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(winners, "study", lambda *_: CELLS)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(CELLS)
    drawn = file.read_text(encoding="utf-8")
    plot(CELLS, file)
    assert file.read_text(encoding="utf-8") == drawn, "the same cells give the same file"
    assert main([]) == 0
    assert "Where the objectives disagree: 8 of 8 cells" in capsys.readouterr().out


def test_mistakes(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--plot", "map.gif"])
    assert ended.value.code == 2
    assert "expected a file that ends in .svg, .png, .pdf; got map.gif" in capsys.readouterr().err
