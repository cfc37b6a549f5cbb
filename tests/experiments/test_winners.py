"""The map of winners: a cell against the comparison that it is made of, and what the command writes."""

import json

import pytest

from experiments import winners
from experiments.winners import Cell, main, plot, study

CELLS = [
    Cell(jitter, ranks, size, "ring", "k-ary", "binomial", 0.5)
    for jitter in ("measured", "30 times")
    for ranks in (8, 16)
    for size in (1024.0, 4096.0)
]


def test_large_jitter_changes_the_winner():
    (cell,) = study((16,), (1024.0,), {"1,000 times": 1000.0}, 400)
    assert cell.floor != cell.p99
    assert cell.lost > 0.2


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
