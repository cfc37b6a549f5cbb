"""The study of in-network reduction: its rows against the closed forms, and what the command writes."""

import json

import pytest

from experiments import in_network
from experiments.in_network import Row, main, plot, study

ROWS = [
    Row(ranks, size, name, "Simple", 1e-5 * ranks, 2e-5 * ranks, 3e-5 * ranks, "schedule")
    for ranks in (8, 64)
    for size in in_network.SIZES.values()
    for name in in_network.ALGORITHMS
]


def test_rows_of_one_node():
    rows = study((8,), 200, 20_000_000)
    assert {row.algorithm for row in rows} == {"in-network", "tree", "ring"}
    for row in rows:
        assert row.floor < row.mean < row.p99
    by = {(row.algorithm, row.size): row for row in rows}
    # Two hops of a microsecond's jitter on eight links, up and down, against fourteen rounds of two.
    short = in_network.SIZES["64 KiB"]
    added = {name: by[name, short].mean - by[name, short].floor for name in ("in-network", "ring")}
    harmonic = sum(1 / count for count in range(1, 9))
    assert added["in-network"] == pytest.approx(2e-6 * harmonic, rel=0.15)
    assert 14e-6 < added["ring"] < 28e-6 + 5e-6


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(in_network, "study", lambda *_: ROWS)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(ROWS)
    drawn = file.read_text(encoding="utf-8")
    plot(ROWS, file)
    assert file.read_text(encoding="utf-8") == drawn, "the same rows give the same file"
    assert main([]) == 0
    assert "with and without in-network reduction" in capsys.readouterr().out
