"""The pictures of the tour: against the catalog's figures typed in again, and Amdahl's law."""

import json

import pytest

from experiments import tour
from experiments.tour import Chip, chips, hops, main, tables


def test_hops_are_ratios_of_the_catalog():
    rack = next(hop for hop in hops() if hop.link == "NVLink-5")
    # 10 TB/s over 1.8 TB/s, both ways together; 0.6 us over 0.3 us; 6 pJ/bit over 0.4.
    assert (rack.slowness, rack.latency, rack.energy) == pytest.approx((10 / 1.8, 2, 15))
    assert all(a.latency < b.latency for a, b in zip(hops(), hops()[1:], strict=False))


def test_a_faster_chip_follows_amdahl():
    for chip in chips((1, 4)):
        assert chip.compute == pytest.approx(100e-6 / chip.factor, rel=1e-5)
        assert chip.exchange == pytest.approx(50e-6, rel=1e-5)
        assert chip.speed_up == pytest.approx(150 / (100 / chip.factor + 50), rel=1e-5)


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [Chip(factor, 1e-4 / factor, 5e-5, 150 / (100 / factor + 50)) for factor in (1, 4)]
    monkeypatch.setattr(tour, "chips", lambda *_: rows)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert [row["factor"] for row in json.loads(capsys.readouterr().out)["chips"]] == [1, 4]
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    assert tables(hops(), rows)[1].row_count == 2
