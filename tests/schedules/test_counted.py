"""Rounds and bytes of schedules: formulas of shapes that no single closed form covers.

The closed forms themselves are held against the schedules in `tests/collectives/test_counts.py`.
"""

import itertools
import math

import numpy as np
import pytest

from mc.schedules import HIERARCHICAL, Schedule, build, counts, stages
from mc.schedules.double_tree import depths, parents_of_both

RANKS = (*range(2, 34), 48, 64, 100, 128)


def ceil_log(n: int, base: int) -> int:
    depth = 0
    while base**depth < n:
        depth += 1
    return depth


@pytest.mark.parametrize("pieces", [1, 2, 8, 64])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_chain_streams(collective, pieces):
    # The last of K pieces sets out K − 1 rounds after the first, which takes n − 1; each round moves B/K.
    for n in RANKS:
        found = counts(build(collective, "ring", n, pieces=pieces))
        assert found.rounds == n - 1 + pieces - 1
        assert found.carried == pytest.approx((n - 1 + pieces - 1) / pieces)
        assert found.busiest_port == pytest.approx(1.0)
        # All but the end of the chain.
        end = n - 1 if collective == "broadcast" else 0
        np.testing.assert_allclose(found.sent, np.arange(n) != end)


@pytest.mark.parametrize("pieces", [1, 2, 8, 64])
def test_a_double_tree_streams(pieces):
    for n in RANKS:
        depth = ceil_log(n, 2)
        found = counts(build("all-reduce", "tree", n, pieces=pieces))
        assert found.rounds == 2 * depth + pieces - 1
        # While the pipeline is full a round moves a piece of all halves.
        assert found.busiest_port == pytest.approx(min(n / 2, 2.0))
        assert found.busiest_port * (1 - 1e-9) <= found.carried
        assert found.carried <= found.busiest_port * found.rounds / pieces * (1 + 1e-9)


@pytest.mark.parametrize("n", [*RANKS, 255, 1000])
def test_both_trees_are_trees_and_no_rank_is_inner_in_both(n):
    trees = parents_of_both(n)
    for parent in trees:
        assert np.count_nonzero(parent < 0) == 1
        assert int(depths(parent).max()) == ceil_log(n, 2)
        assert np.bincount(parent[parent >= 0]).max() <= 2
    if n > 3:
        first, second = (
            set(parent[parent >= 0].tolist()) - {int(np.flatnonzero(parent < 0)[0])} for parent in trees
        )
        assert not first & second


@pytest.mark.parametrize("sides", [(4,), (4, 4), (3, 5), (2, 3, 4), (4, 4, 4), (6, 1), (2, 2, 2, 2)])
def test_tori(sides):
    n, steps, dimensions = math.prod(sides), sum(side - 1 for side in sides), sum(side > 1 for side in sides)
    for collective, ways in (("all-reduce", 2), ("all-gather", 1), ("reduce-scatter", 1)):
        schedule = build(collective, "multi-ring", n, units=sides)
        found = counts(schedule, own_ports=True)
        assert found.rounds == ways * steps
        np.testing.assert_allclose(found.sent, ways * (n - 1) / n)
        assert found.combined == pytest.approx(
            0.0 if collective == "all-gather" else counts(schedule).combined
        )
        if len({side for side in sides if side > 1}) == 1:
            # Equal sides: all links carry the same in every round.
            assert found.carried == pytest.approx(ways * (n - 1) / n / (2 * dimensions))
            assert found.busiest_port == pytest.approx(found.carried)
        assert counts(schedule).busiest_port == pytest.approx(ways * (n - 1) / n)


@pytest.mark.parametrize("sides", [(4,), (4, 4), (2, 3, 4)])
def test_tori_with_a_root(sides):
    n, steps, lanes = math.prod(sides), sum(side - 1 for side in sides), 2 * len(sides)
    for collective in ("broadcast", "reduce"):
        found = counts(build(collective, "multi-ring", n, units=sides), own_ports=True)
        assert found.rounds == 1 + steps
        # What is scattered, and what goes round.
        assert found.sent.sum() == pytest.approx((n - 1) / n + (n - 1))
        if len(set(sides)) == 1:
            assert found.carried == pytest.approx(2 * (n - 1) / n / lanes)


@pytest.mark.parametrize(
    ("collective", "name", "rounds", "total", "carried", "combined"),
    [
        # Bytes in all, busiest port and combined, in multiples of (n − 1)/n·B.
        ("reduce-scatter", "direct", 1, lambda n: n, lambda n: 1, lambda n: 1),
        ("all-gather", "direct", 1, lambda n: n, lambda n: 1, lambda n: 0),
        ("all-reduce", "direct", 2, lambda n: 2 * n, lambda n: 2, lambda n: 1),
        ("broadcast", "direct", 2, lambda n: n, lambda n: 2, lambda n: 0),
        ("reduce", "direct", 2, lambda n: n + 1, lambda n: 2, lambda n: 1),
        ("all-reduce", "one-shot", 1, lambda n: n * n, lambda n: n, lambda n: n),
    ],
)
def test_straight_from_rank_to_rank(collective, name, rounds, total, carried, combined):
    for n in RANKS:
        found = counts(build(collective, name, n))
        share = (n - 1) / n
        assert found.rounds == rounds
        assert found.sent.sum() == pytest.approx(total(n) * share)
        assert found.combined == pytest.approx(combined(n) * share)
        assert found.carried == pytest.approx(carried(n) * share)


def test_two_directions_halve_what_a_link_carries():
    for n in RANKS:
        schedule = build("all-reduce", "bidirectional-ring", n)
        assert counts(schedule, own_ports=True).carried == pytest.approx((n - 1) / n)
        assert counts(schedule).carried == pytest.approx(2 * (n - 1) / n)


@pytest.mark.parametrize("units", [(2, 3), (8, 4), (3, 4, 5), (4, 1, 2)])
@pytest.mark.parametrize("collective", ["all-reduce", "reduce-scatter", "all-gather", "all-to-all"])
def test_compositions_add_up(collective, units):
    # Every stage works on what its tier has of the buffer; all ranks take part in all of them.
    n = math.prod(units)
    share = {
        tier: 1.0 / (1 if collective == "all-to-all" else math.prod(units[:tier]))
        for tier in range(len(units))
    }
    schedule = build(collective, HIERARCHICAL, n, units=units)
    parts = [(counts(flat(name, units[tier])), share[tier]) for name, tier in stages(collective, len(units))]
    found = counts(schedule)
    assert found.rounds == sum(each.rounds for each, _ in parts)
    for key in ("carried", "combined"):
        assert getattr(found, key) == pytest.approx(sum(getattr(each, key) * part for each, part in parts))
    np.testing.assert_allclose(found.sent, sum(each.sent.mean() * part for each, part in parts))
    if collective != "all-to-all":
        # As few bytes as any algorithm can.
        assert found.sent[0] == pytest.approx((2 if collective == "all-reduce" else 1) * (n - 1) / n)


def flat(collective: str, n: int) -> Schedule:
    return build(collective, "direct" if collective == "all-to-all" else "ring", n)


@pytest.mark.parametrize("units", [(2, 3), (8, 4), (3, 4, 5)])
@pytest.mark.parametrize("collective", ["reduce", "broadcast", "gather", "scatter", "barrier"])
def test_compositions_with_a_root_add_up(collective, units):
    n = math.prod(units)
    found = counts(build(collective, HIERARCHICAL, n, units=units))
    logs = [ceil_log(unit, 2) for unit in units]
    assert found.rounds == (2 * sum(logs) - logs[-1] if collective == "barrier" else sum(logs))
    if collective in ("reduce", "broadcast"):
        assert found.sent.sum() == pytest.approx(n - 1)
        assert found.carried == pytest.approx(sum(logs))
    elif collective != "barrier":
        assert found.carried == pytest.approx((n - 1) / n)
    else:
        assert found.carried == 0.0


def test_stages_of_a_composition_wait_for_all_lanes():
    schedule = build(
        "all-reduce",
        HIERARCHICAL,
        12,
        units=(4, 3),
        algorithms=("bidirectional-ring", "ring", "bidirectional-ring"),
    )
    assert (schedule.lanes, schedule.joins) == (2, (3, 7))


@pytest.mark.parametrize(
    ("ranks", "units", "radix", "hops"),
    [
        (64, (), 4, 3),
        (64, (), 64, 1),
        (65, (), 64, 2),
        (512, (8, 64), (8, 16), 1 + 2),
        (256, (8, 8, 4), (8, 4, 2), 1 + 2 + 2),
        (12, (8, 2), 8, 2),
    ],
)
def test_hops_through_tiers(ranks, units, radix, hops):
    for collective, ways in (("all-reduce", 2), ("reduce", 1), ("broadcast", 1), ("barrier", 2)):
        found = counts(build(collective, "in-network", ranks, units=units, radix=radix))
        assert found.rounds == ways * hops
        assert found.carried == (0.0 if collective == "barrier" else 1.0)


@pytest.mark.parametrize("n", [1, 5, 8, 33])
def test_nothing_is_lost_between_ranks(n):
    # What is sent is received, unless switches combine or copy it.
    for collective, name in itertools.product(
        (
            "all-reduce",
            "reduce",
            "broadcast",
            "all-gather",
            "reduce-scatter",
            "all-to-all",
            "gather",
            "scatter",
        ),
        (
            "ring",
            "bidirectional-ring",
            "halving-doubling",
            "recursive-doubling",
            "tree",
            "k-ary",
            "bruck",
            "binomial",
        ),
    ):
        try:
            found = counts(build(collective, name, n))
        except ValueError:
            continue
        assert found.sent.sum() == pytest.approx(found.received.sum())
