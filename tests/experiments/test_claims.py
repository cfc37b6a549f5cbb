"""The claims hold, and the command can tell when one does not.

Expected figures are typed into the experiment; here they are worked out once more from their formulas, in
double precision and without the engine.
"""

import contextlib
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from experiments.claims import __main__ as command
from experiments.claims import collective, congestion, optics, slowest, step
from experiments.claims.claim import Claim, Group, falls

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "claims.md"


@pytest.fixture(scope="module")
def quick_run():
    """Exit code and rows of the whole command, run once."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = command.main(["--quick", "--json"])
    return code, json.loads(printed.getvalue())


@pytest.mark.smoke
def test_every_claim_holds(quick_run):
    code, rows = quick_run
    assert [row for row in rows if not row["holds"]] == []
    assert code == 0


def test_rows_have_exactly_these_keys(quick_run):
    _, rows = quick_run
    for row in rows:
        assert list(row) == ["claim", "expected", "computed", "tolerance", "holds"]
        assert row["holds"] is (abs(row["computed"] - row["expected"]) <= row["tolerance"])


def test_claims_have_names_of_their_own(quick_run):
    _, rows = quick_run
    names = [row["claim"] for row in rows]
    assert len(names) == len(set(names)) > 60


def test_the_documentation_lists_every_claim(quick_run):
    _, rows = quick_run
    listed = [line.split(" | ")[:2] for line in DOCUMENTED.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        assert [f"| {row['claim']}", f"{row['expected']:,.7g}"] in listed


@pytest.fixture
def only_optics(monkeypatch):
    """A command with one cheap group."""
    monkeypatch.setattr(command, "GROUPS", (Group("Copper and optics", optics.claims),))


@pytest.mark.usefixtures("only_optics")
def test_a_false_claim_is_told(monkeypatch, capsys):
    monkeypatch.setattr(optics, "CABLES", 5185)
    assert command.main(["--json"]) == 1
    out, err = capsys.readouterr()
    false = [row for row in json.loads(out) if not row["holds"]]
    assert [(row["claim"], row["expected"], row["computed"]) for row in false] == [
        ("NVL72: cables of one pair", 5185, 5184)
    ]
    assert err.startswith("CLAIMS FAILED: 1 of 12\n")
    assert "NVL72: cables of one pair: expected 5185 within 0; got 5184" in err


@pytest.mark.usefixtures("only_optics")
@pytest.mark.parametrize("form", [[], ["--markdown"]])
def test_a_false_claim_shows_in_the_tables(monkeypatch, capsys, form):
    assert command.main(form) == 0
    out, err = capsys.readouterr()
    assert "5,184" in out
    assert "FAILS" not in out + err
    monkeypatch.setattr(optics, "RACK_TERABITS", 129.6)
    assert command.main(form) == 1
    out, err = capsys.readouterr()
    assert out.count("FAILS") == 1
    assert err.startswith("CLAIMS FAILED: 1 of 12\n")


@pytest.mark.parametrize(
    ("expected", "computed", "tolerance", "holds"),
    [
        (1, 1, 0, True),
        (1, 1.5, 0.5, True),
        (1, 1.6, 0.5, False),
        (1, 0.4, 0.5, False),
        (1, math.nan, 9, False),
    ],
)
def test_a_claim_holds_within_its_tolerance(expected, computed, tolerance, holds):
    assert Claim("one", expected, computed, tolerance).holds is holds


def test_falls_counts_along_the_first_axis():
    assert falls(np.asarray([[1.0, 9.0], [2.0, 8.0], [2.0, 9.0], [1.0, 7.0]])) == 3


# The expected figures, once more.


def test_median_percentiles():
    for ranks, (percentile, rounding) in slowest.MEDIAN_PERCENTILE.items():
        assert abs(100 * 0.5 ** (1 / ranks) - percentile) <= rounding


def test_growth_of_the_mean():
    for ranks, growth in slowest.MEAN_GROWTH.items():
        # H_2n − H_n, summed where that is short, and by Euler and Maclaurin where it is long.
        summed = (
            sum(1 / k for k in range(ranks + 1, 2 * ranks + 1))
            if ranks <= 1000
            else math.log(2) - 1 / (4 * ranks)
        )
        assert growth == pytest.approx(slowest.JITTER_US * summed, abs=1e-6)


def test_step_times():
    for factor, time in step.STEP_TIME.items():
        assert time == 100 / factor + 50


def test_rounds_are_the_depth_of_the_tree():
    for (ranks, radix), (up, both) in collective.ROUNDS.items():
        assert radix ** (up - 1) < ranks <= radix**up
        assert both == 2 * up


def test_crossover_sizes():
    for ranks, megabytes in collective.CROSSOVER.items():
        depth = (ranks - 1).bit_length()
        assert megabytes == pytest.approx(ranks * (ranks - 1 - depth) * 1e-6 * 100e9 / 1e6, rel=1e-9)


def test_speed_ups_under_congestion():
    def speed_up(chips, busy):
        nodes = chips / 8
        transfer = 2 * (chips - 1) / chips * 10e6 / 100e9
        waiting = math.log2(nodes) * transfer * (1 - (1 - busy) ** nodes)
        return 0.1 / (0.1 / chips + transfer + waiting)

    congested = {chips: speed_up(chips, 0.01) for chips in congestion.SIZES}
    assert max(congested, key=congested.__getitem__) == congestion.PEAK_CHIPS
    assert round(congested[congestion.PEAK_CHIPS], 2) == congestion.PEAK_SPEED_UP
    assert round(congested[congestion.SIZES[-1]], 2) == congestion.LAST_SPEED_UP
    assert round(speed_up(congestion.SIZES[-1], 0.0), 2) == congestion.QUIET_LAST_SPEED_UP
