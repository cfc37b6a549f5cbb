"""The study of congestion against its closed forms."""

import json

import pytest

from experiments import congestion
from experiments.congestion import (
    BUSY,
    SLOWDOWN,
    TRANSFER_TIME,
    WORK,
    Memory,
    Size,
    busy_probability,
    main,
    memories,
    sizes,
)


def speed_up(ranks, busy):
    transfer = 2 * (ranks - 1) / ranks * TRANSFER_TIME
    waiting = (SLOWDOWN - 1) * transfer * (1 - (1 - busy) ** (ranks / 8))
    return WORK / (WORK / ranks + transfer + waiting)


def test_speed_ups_are_the_closed_form():
    (row,) = sizes([256], 20_000)
    assert row.quiet == pytest.approx(speed_up(256, 0), rel=1e-5)
    # The share of steps with a busy link, 27 % and 61 %, is known to 0.4 points.
    assert row.steady == pytest.approx(speed_up(256, BUSY), rel=1e-2)
    assert row.growing == pytest.approx(speed_up(256, busy_probability(256)), rel=1e-2)
    assert busy_probability(64) == pytest.approx(BUSY)


def test_episodes_do_not_average_out():
    forget, last = memories(20_000)
    assert forget.width == pytest.approx(1, abs=0.05)
    assert last.width > 3
    assert last.p99_in_a_row > 1.1 * forget.p99_in_a_row
    assert last.p99 == pytest.approx(forget.p99, rel=1e-5)


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        congestion, "sizes", lambda *_: [Size(16, 15.0, 14.0, 14.0, 0.01), Size(32, 30.0, 25.0, 20.0, 0.02)]
    )
    monkeypatch.setattr(congestion, "memories", lambda *_: [Memory(1.0, 1e-3, 2e-3, 1e-3, 1.0)])
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert [row["ranks"] for row in json.loads(capsys.readouterr().out)["sizes"]] == [16, 32]
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    assert main(["--quick"]) == 0
    assert "growing load" in capsys.readouterr().out
