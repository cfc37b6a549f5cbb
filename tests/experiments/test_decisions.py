"""The study prints what the modules say, and figures that are published."""

import itertools
import json
import math

import pytest

from experiments import decisions


def test_ridges_are_products_of_their_factors():
    for each in decisions.ridges():
        assert each.ridge == pytest.approx(each.one_format * each.formats / each.wires)


def test_copper_gets_shorter():
    found = decisions.reaches()
    for before, after in itertools.pairwise(found):
        assert after.reach[0] < before.reach[0]
        assert after.reach[1] < after.reach[0] < after.reach[2]
    assert all(each.crossover[0] <= each.reach[0] * 1.001 for each in found)


def test_the_spine_as_published():
    # NVIDIA: 5,184 cables, 20 kW; SemiAnalysis: 648 modules of 30 W.
    assert decisions.spine() == pytest.approx({"cables": 5184, "optics_kw": 648 * 0.030})


def test_the_command(monkeypatch, capsys, tmp_path):
    row = decisions.Joules(
        "one", 8, 1.0, 900.0, 900.0, 0.1, 2.0, {"node": 5.0}, 1000.0, math.floor(1e9 / 1.2 / 1000)
    )
    monkeypatch.setattr(decisions, "joules", lambda names: [row] * len(names))
    assert decisions.main(["--quick", "--json", "--plot", str(tmp_path / "f.svg")]) == 0
    assert json.loads(capsys.readouterr().out)["joules"][0]["fed"] == 833_333
    assert (tmp_path / "f.svg").exists()
    assert decisions.main([]) == 0
    assert "833,333" in capsys.readouterr().out
