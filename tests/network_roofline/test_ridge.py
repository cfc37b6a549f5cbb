"""Ridge points against figures worked out by hand, and moves that add up."""

import itertools
import math

import pytest

from mc.catalog import chip, chips
from mc.network_roofline import (
    TIERS,
    WIRES,
    RidgeError,
    Roof,
    fastest,
    movement,
    movements,
    plan_points,
    ridge,
    ridges,
)
from mc.parallel import Traffic


@pytest.mark.parametrize(
    ("name", "tier", "number_format", "per_byte"),
    [
        ("A100", "scale-up", "bf16", 312e12 / 300e9),
        ("H100", "scale-out", "fp8", 1979e12 / 50e9),
        ("B200", "scale-out", "fp4", 180_000),
        ("Rubin", "scale-up", "fp4", 35e15 / 1.8e12),
        ("TPU-v5p", "scale-up", "bf16", 459e12 / 600e9),
    ],
)
def test_ridge_points(name, tier, number_format, per_byte):
    assert ridge(chip(name), tier, number_format).per_byte == pytest.approx(per_byte, rel=1e-12)


def test_the_wire_has_its_own_format():
    own, sent = (ridge(chip("B200"), "scale-out", "fp4", wire) for wire in ("fp4", "bf16"))
    assert own.over_own_format == 1
    assert sent.over_own_format == 4
    assert sent.per_number == 4 * own.per_number == 360_000


def test_every_combination_is_there_once():
    found = list(ridges(wires=WIRES))
    keys = [(each.chip, each.tier, each.number_format, each.wire) for each in found]
    assert len(keys) == len(set(keys))
    assert {each.chip for each in found} == set(chips())


@pytest.mark.parametrize("tier", TIERS)
def test_moves_add_up_along_a_lineage(tier):
    names = ("A100", "H100", "B200", "Rubin")
    steps = [movement(*pair, tier) for pair in itertools.pairwise(names)]
    whole = movement("A100", "Rubin", tier)
    for term in ("silicon", "formats", "wires", "total"):
        assert getattr(whole, term) == pytest.approx(sum(getattr(each, term) for each in steps), abs=1e-12)


def test_every_move_is_the_ratio_of_its_ridges():
    for each in movements():
        assert each.factor == pytest.approx(each.after.per_byte / each.before.per_byte, rel=1e-12)
        assert sum(each.shares.values()) == pytest.approx(1, abs=1e-9)


def test_a_ridge_that_stays_has_no_shares():
    assert movement("H100", "H100", "scale-up").shares == {}


def test_of_two_formats_as_fast_the_wider_counts():
    # fp8 is no faster than bf16 on TPU v5p, and integers are not asked for.
    assert fastest(chip("TPU-v5p")) == "bf16"
    assert fastest(chip("H100")) == "fp8"


def test_what_a_chip_has_not():
    with pytest.raises(RidgeError, match="expected a chip with a scale-out link; TPU-v4 has none"):
        ridge(chip("TPU-v4"), "scale-out", "bf16")
    with pytest.raises(RidgeError, match=r"expected a number format that A100 has \(.*bf16.*\); got fp8"):
        ridge(chip("A100"), "scale-up", "fp8")


def test_points_of_a_plan():
    roofs = [Roof("node", 100.0, 1000.0), Roof("pod", 10.0, 1000.0)]
    sent = [Traffic("tp", 0, 50.0, 50.0), Traffic("dp", 1, 40.0, 40.0), Traffic("pp", 1, 5.0, 5.0)]
    found = plan_points(sent, roofs, flop=2000.0)
    tp, dp, pp = found.points
    # Two seconds of computing; half a second, four and half a second of bytes.
    assert [each.dimension for each in found.points] == ["tp", "dp", "pp"]
    assert [each.factor for each in (tp, dp, pp)] == pytest.approx([4.0, 0.5, 4.0])
    assert [each.bound for each in (tp, dp, pp)] == ["compute", "fabric", "compute"]
    assert [each.slack for each in (tp, dp, pp)] == pytest.approx([1.5, -2.0, 1.5])
    assert [each.attainable for each in (tp, dp, pp)] == pytest.approx([1000.0, 500.0, 1000.0])
    assert [each.bytes for each in found.totals] == [50.0, 45.0]
    # At the ridge both take the same.
    at = plan_points([Traffic("dp", 1, 20.0, 20.0)], roofs, flop=2000.0).points[0]
    assert at.intensity == roofs[1].ridge
    assert math.isclose(at.slack, 0)
