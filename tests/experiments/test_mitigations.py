"""The study of mitigations: what it tries can be, and its rows come out as a table, data and a picture."""

import json

import pytest
from scipy import stats

from experiments import mitigations
from experiments.mitigations import SHIPPED, Dropped, main, slow_requests, table
from mc.config import load_experiment
from mc.experiment.mitigations import default_switches, variants_of


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_tried_by_itself_can_be(name):
    config = load_experiment(name)
    variants, impossible = variants_of(name, (), default_switches(config))
    assert not impossible
    assert any("drop_slowest" in title for title in variants)
    # As many chips as there are, in whole nodes where some are set aside.
    for each in variants.values():
        assert each.chips + each.removed <= config.cluster.size
        assert each.ranks % config.cluster.tiers[0].fan_out == 0


def test_slow_requests_are_the_published_ones_and_binomial():
    found = slow_requests()
    assert round(found[0].part, 2) == found[0].published == 0.63
    for row in found:
        assert row.part == pytest.approx(stats.binom.sf(row.dropped, 100, 0.01), rel=1e-3)


def test_rows_come_out(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [Dropped(0, 5e-3, 9e-3, 1.0), Dropped(8, 4e-3, 5e-3, 1.24)]
    monkeypatch.setattr(mitigations, "switches", lambda _: [])
    monkeypatch.setattr(mitigations, "how_many", lambda *_: rows)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert [row["ranks"] for row in json.loads(capsys.readouterr().out)["dropped"]] == [0, 8]
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    assert table(rows).row_count == 2
