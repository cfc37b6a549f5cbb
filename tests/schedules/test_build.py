"""What `build` refuses, with a text that says what would do; and that large schedules stay small."""

import numpy as np
import pytest

from mc.errors import InputError
from mc.schedules import HIERARCHICAL, SCHEDULES, build, counts


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("all-reduse", "ring", 4), {}, "unknown collective `all-reduse`; did you mean `all-reduce`?"),
        (("all-reduce", "rings", 4), {}, "unknown algorithm `rings` for all-reduce; did you mean `ring`?"),
        (("broadcast", "bruck", 4), {}, "unknown algorithm `bruck` for broadcast"),
        (
            ("send-recv", "hierarchical", 4),
            {"units": (2, 2)},
            "unknown algorithm `hierarchical` for send-recv",
        ),
        (("all-reduce", "ring", 0), {}, "ranks: expected a whole number >= 1; got 0"),
        (("all-reduce", "ring", -3), {}, "ranks: expected a whole number >= 1; got -3"),
        (("all-reduce", "ring", 4.0), {}, "ranks: expected a whole number >= 1; got 4.0"),
        (("all-reduce", "ring", True), {}, "ranks: expected a whole number >= 1; got True"),
        (("reduce", "k-ary", 4), {"radix": 1}, "radix: expected a whole number >= 2; got 1"),
        (("reduce", "in-network", 4), {"radix": (4, 1)}, "radix: expected a whole number >= 2; got 1"),
        (("reduce", "in-network", 4), {"radix": ()}, "radix: expected at least one number; got none"),
        (("all-reduce", "tree", 4), {"pieces": 0}, "pieces: expected a whole number >= 1; got 0"),
        (
            ("all-reduce", "multi-ring", 12),
            {"units": (3, 3)},
            "units: expected a product of 12 ranks; got 3 x 3 = 9",
        ),
        (("all-reduce", "multi-ring", 12), {"units": (12, 0)}, "units: expected a whole number >= 1; got 0"),
        (
            ("all-reduce", "in-network", 12),
            {"units": (2, 3)},
            "units: expected room for 12 ranks; got 2 x 3 = 6",
        ),
        (("all-reduce", HIERARCHICAL, 12), {}, "units: expected the peers of each tier"),
        (
            ("all-reduce", HIERARCHICAL, 12),
            {"units": (5, 2)},
            "units: expected a product of 12 ranks; got 5 x 2 = 10",
        ),
        (
            ("all-reduce", HIERARCHICAL, 4),
            {"units": (2, 2), "algorithms": ("ring",)},
            "expected one for each of 3 stages (reduce-scatter in tier 0, all-reduce in tier 1, all-gather in "
            "tier 0); got 1",
        ),
        (
            ("all-gather", HIERARCHICAL, 4),
            {"units": (2, 2), "algorithms": ("ring", "recursive-halving")},
            "algorithms: unknown algorithm `recursive-halving` for all-gather",
        ),
        (
            ("all-reduce", "ring", 4),
            {"algorithms": ("ring",)},
            "algorithms: expected none but for `hierarchical`; got ['ring']",
        ),
    ],
)
def test_what_cannot_be_built(arguments, options, message):
    with pytest.raises(InputError) as caught:
        build(*arguments, **options)
    assert message in str(caught.value)


def test_one_rank_sends_nothing():
    for collective, known in SCHEDULES.items():
        for name in known:
            schedule = build(collective, name, 1)
            assert (schedule.rows, schedule.rounds, schedule.switches) == (0, 0, 0)
            assert counts(schedule).sent.tolist() == [0.0]


@pytest.mark.parametrize(
    ("collective", "name", "n", "rows"),
    [
        # One row per message: ranges of chunks are not taken apart.
        ("all-reduce", "halving-doubling", 4096, 24 * 4096),
        ("reduce-scatter", "recursive-halving", 4095, 12 * 4095),
        ("all-gather", "recursive-doubling", 4096, 12 * 4096),
        ("all-reduce", "ring", 512, 2 * 511 * 512),
        ("gather", "binomial", 4096, 4095),
    ],
)
def test_rows(collective, name, n, rows):
    assert build(collective, name, n).rows == rows


def test_rows_of_switches():
    # Every rank and every switch but the top one has one link up; 64 + 8 + 1 switches of 8 inputs.
    schedule = build("all-reduce", "in-network", 512, radix=8)
    assert schedule.switches == 73
    assert schedule.rows == 2 * (512 + 72)
    assert schedule.switch_tiers is not None
    np.testing.assert_array_equal(schedule.switch_tiers, 0)
    # Nodes of 8 with a switch of 8; 64 of them under switches of 16: 64 + 4 + 1.
    schedule = build("all-reduce", "in-network", 512, radix=(8, 16), units=(8, 64))
    np.testing.assert_array_equal(np.bincount(schedule.switch_tiers), [64, 5])
