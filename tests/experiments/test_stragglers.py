"""The study of measured stragglers: its data, its fits on made-up records, and what it finds."""

import functools
import json

import numpy as np
import pytest

from experiments import stragglers
from experiments.stragglers import BOTH, ONE, autocorrelation, distance, fit_both, load, main, study


def made_up(steps=4000, ranks=16, slow=1, seed=3):
    rng = np.random.default_rng(seed)
    times = 1.1 * rng.lognormal(0, 0.02, (steps, 1)) * rng.lognormal(0, 0.01, (steps, ranks))
    times[:, :slow] *= 2.5
    return times


def test_a_made_up_record_is_taken_apart():
    fit = fit_both(made_up())
    assert fit.slow == 1 / 16
    assert fit.slowdown == pytest.approx(2.5, rel=5e-3)
    assert fit.median == pytest.approx(1.1, rel=5e-3)
    assert fit.job == pytest.approx(0.02, rel=0.05)
    assert fit.rank == pytest.approx(0.01, rel=0.05)
    times = made_up()
    assert autocorrelation(times) == pytest.approx(fit.autocorrelation, abs=0.01)
    assert autocorrelation(made_up(slow=0)) == pytest.approx(0, abs=0.05)


def test_distance_of_two_samples():
    assert distance(np.array([1.0, 2.0]), np.array([3.0])) == 1
    assert distance(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == 0.5


def test_the_records_are_the_published_ones():
    records = load()
    assert {name: times.shape for name, times in records.items()} == {
        "AR": (44, 16),
        "ST": (32, 8),
        "BLOOM": (18, 1),
    }
    # As their publishers say: one worker of AR about 2.5 times as slow, BLOOM's job from 105.2 s to 111.1 s.
    medians = np.median(records["AR"], axis=0)
    assert medians[0] == pytest.approx(2.5, abs=0.05)
    assert np.abs(medians[1:] - 1).max() < 0.02
    assert records["BLOOM"].max() == pytest.approx(111.14 / 105.17, abs=1e-4)


@pytest.fixture(scope="module")
def quick_rows():
    """Rows of the quick study; what it draws is kept, so that the picture of the same samples need not draw again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stragglers, "draw", functools.cache(stragglers.draw))
        yield study(stragglers.QUICK_SAMPLES)


@pytest.mark.smoke
def test_two_kinds_fit_where_one_does_not(quick_rows):
    rows = {(row.trace, row.model): row for row in quick_rows}
    for trace in ("AR", "ST", "BLOOM"):
        assert rows[trace, BOTH].ks < 0.65 * rows[trace, ONE].ks
    slow = rows["AR", BOTH]
    assert rows["AR", ONE].ks > 0.95
    assert slow.p50 == pytest.approx(slow.measured_p50, rel=0.01)
    assert slow.autocorrelation > 0.99 > 0.01 > rows["AR", ONE].autocorrelation
    assert slow.measured_autocorrelation > 0.99


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path, quick_rows):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(stragglers, "study", lambda *_: quick_rows)
    file = tmp_path / "picture.svg"
    assert main(["--quick", "--json", "--plot", str(file)]) == 0
    assert {row["trace"] for row in json.loads(capsys.readouterr().out)} == {"AR", "ST", "BLOOM"}
    assert file.read_text(encoding="utf-8").startswith("<?xml")
    assert main([]) == 0
    assert "persistent and transient" in capsys.readouterr().out
