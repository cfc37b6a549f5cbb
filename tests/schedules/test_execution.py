"""Every schedule carried out on real numbers: the right result on every rank, for any number of ranks."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from mc.schedules import HIERARCHICAL, SCHEDULES, Schedule, build, execute, stages
from tests.schedules.carried_out import assert_right

RANKS = (*range(1, 34), 48, 64, 100, 128)
EVERY = [(collective, name) for collective, each in SCHEDULES.items() for name in each]


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_every_algorithm_for_any_number_of_ranks(collective, name):
    for n in RANKS:
        assert_right(build(collective, name, n))


@pytest.mark.parametrize("pieces", [1, 2, 7])
@pytest.mark.parametrize(
    ("collective", "name"), [("broadcast", "ring"), ("reduce", "ring"), ("all-reduce", "tree")]
)
def test_any_number_of_pieces(collective, name, pieces):
    for n in RANKS:
        assert_right(build(collective, name, n, pieces=pieces))


@pytest.mark.parametrize("radix", [2, 3, 5, 64])
@pytest.mark.parametrize("name", ["k-ary", "in-network"])
def test_any_radix(name, radix):
    for collective, known in SCHEDULES.items():
        for n in RANKS if name in known else ():
            assert_right(build(collective, name, n, radix=radix))


@pytest.mark.parametrize(
    ("ranks", "units", "radix"),
    [
        (32, (8, 4), (8, 2)),
        (12, (8, 2), 4),  # the last node is half empty
        (9, (8, 2), 4),  # the last node holds one rank
        (100, (4, 5, 5), (2, 5, 3)),
        (60, (8, 3, 4), (3, 3, 2)),
        (33, (1, 33), 4),
        (33, (33, 1), 4),
        (1, (8, 2), 4),
    ],
)
def test_switches_over_several_tiers(ranks, units, radix):
    for collective in ("all-reduce", "reduce", "broadcast", "barrier"):
        assert_right(build(collective, "in-network", ranks, units=units, radix=radix))


TORI = [(4,), (2, 2), (4, 4), (3, 5), (1, 6), (6, 1), (2, 3, 4), (4, 4, 4), (5, 1, 2), (2, 2, 2, 3), (1, 1)]


@pytest.mark.parametrize("sides", TORI)
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"])
def test_tori(collective, sides):
    assert_right(build(collective, "multi-ring", math.prod(sides), units=sides))


FACTORS = [
    (2, 2),
    (4, 3),
    (8, 4),
    (5, 7),
    (1, 6),
    (6, 1),
    (2, 3, 4),
    (4, 2, 4),
    (3, 1, 5),
    (8, 4, 4),
    (2, 2, 2, 3),
    (7,),
]


@pytest.mark.parametrize("units", FACTORS)
@pytest.mark.parametrize("collective", sorted(set(SCHEDULES) - {"send-recv"}))
def test_compositions(collective, units):
    assert_right(build(collective, HIERARCHICAL, math.prod(units), units=units))


@pytest.mark.parametrize("units", [(4, 3), (3, 4), (2, 5)])
@pytest.mark.parametrize("collective", sorted(set(SCHEDULES) - {"send-recv"}))
def test_compositions_of_any_algorithms(collective, units):
    # Every combination of flat algorithms over two tiers.
    known = [SCHEDULES[name] for name, _ in stages(collective, len(units))]
    for algorithms in itertools.product(*known):
        assert_right(
            build(collective, HIERARCHICAL, math.prod(units), units=units, algorithms=algorithms, pieces=3)
        )


@pytest.mark.parametrize(
    ("units", "algorithms"),
    [
        # A slice of a torus with rings inside, halving and doubling between slices.
        (((2, 3, 2), 4), ("multi-ring", "halving-doubling", "multi-ring")),
        ((2, (3, 3)), ("ring", "multi-ring", "recursive-doubling")),
        (((2, 2), 3, 2), ("multi-ring", "recursive-halving", "tree", "recursive-doubling", "multi-ring")),
        ((4, 3, 3), ("bidirectional-ring", "recursive-halving", "in-network", "bidirectional-ring", "ring")),
    ],
)
def test_compositions_with_tori_trees_and_switches(units, algorithms):
    n = math.prod(math.prod(each) if isinstance(each, tuple) else each for each in units)
    assert_right(build("all-reduce", HIERARCHICAL, n, units=units, algorithms=algorithms))


@pytest.mark.parametrize("sides", TORI)
def test_tori_send_to_neighbours_only_and_through_the_right_port(sides):
    schedule = build("all-reduce", "multi-ring", math.prod(sides), units=sides)

    def coordinates(node):
        weights = np.cumprod((1, *sides[:-1]))
        return node[:, None] // weights % np.asarray(sides)

    long = [dimension for dimension, side in enumerate(sides) if side > 1]
    apart = (coordinates(schedule.target) - coordinates(schedule.source)) % np.asarray(sides)
    dimension, back = np.asarray([*long, 0])[schedule.port // 2], schedule.port % 2
    step = np.where(back, np.asarray(sides)[dimension] - 1, 1)
    wanted = np.zeros_like(apart)
    wanted[np.arange(schedule.rows), dimension] = step
    np.testing.assert_array_equal(apart, wanted)


def test_equal_sides_keep_all_links_of_a_torus_busy():
    schedule = build("all-reduce", "multi-ring", 64, units=(4, 4, 4))
    key = (schedule.round.astype(int) * 64 + schedule.source) * 6 + schedule.port
    np.testing.assert_array_equal(np.bincount(key), 1)


def test_a_round_reads_before_it_writes():
    # Partners swap and add; were the first message written at once, the second would count it twice.
    schedule = build("all-reduce", "recursive-doubling", 2)
    np.testing.assert_array_equal(execute(schedule, np.asarray([[1.0], [10.0]])), 11.0)


def test_a_missing_message_shows():
    # Negative control of `assert_right`: no message of a ring can be left out.
    schedule = build("all-reduce", "ring", 5)
    columns = ("round", "slot", "source", "target", "first", "count", "combine")
    for lost in range(schedule.rows):
        kept = {name: np.delete(getattr(schedule, name), lost) for name in columns}
        kept |= {name: None for name in ("source_lane", "target_lane", "cut_through", "attached", "port")}
        with pytest.raises(AssertionError):
            assert_right(dataclasses.replace(schedule, **kept))


def test_switches_and_other_operations():
    # The identity of an operation is never needed: negative numbers have a maximum too.
    data = -1.0 - np.arange(7.0)[:, None]
    for name in SCHEDULES["all-reduce"]:
        schedule = build("all-reduce", name, 7)
        buffers = np.repeat(data, schedule.chunks, axis=1)
        np.testing.assert_array_equal(execute(schedule, buffers, np.maximum), -1.0)


def one_message(**changes) -> Schedule:
    columns = {name: [0] for name in ("round", "slot", "first")} | {
        "source": [0],
        "target": [1],
        "count": [1],
    }
    structure = {"collective": "send-recv", "algorithm": "direct", "ranks": 3, "chunks": 2}
    return Schedule(**(columns | structure | changes))


def test_one_message():
    result = execute(one_message(first=[1]), np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(result, [[0, 1], [2, 1], [4, 5]])


TWO = {"round": [0, 0], "slot": [0, 0], "first": [0, 0], "count": [1, 1]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": [3]}, "source: expected numbers >= 0 and < 3; got 3 to 3"),
        ({"target": [0]}, "got a message of a node to itself"),
        ({"first": [2]}, "first: expected numbers >= 0 and < 2; got 2 to 2"),
        ({"count": [0]}, "count: expected numbers >= 1 and < 3; got 0 to 0"),
        ({"round": [-1]}, "round: expected numbers >= 0; got -1 to -1"),
        ({"target_lane": [1]}, "target_lane: expected numbers >= 0 and < 1; got 1 to 1"),
        ({"port": [2], "ports": 2}, "port: expected numbers >= 0 and < 2; got 2 to 2"),
        ({"count": [1, 1]}, "count: expected one value per row, 1 of them; got (2,)"),
        ({"combine": [True, False]}, "combine: expected one value per row, 1 of them; got (2,)"),
        ({"piece_shares": [-1.0]}, "piece_shares: expected finite numbers >= 0; got others"),
        ({"owner": [0]}, "owner: expected one rank per chunk; got shape (1,)"),
        ({"ranks": 0}, "ranks: expected a whole number >= 1; got 0"),
        ({"chunks": 0}, "chunks: expected a whole number >= 1; got 0"),
        (TWO | {"source": [0, 0], "target": [1, 2]}, "node 0 sends several in round 0, slot 0"),
        (TWO | {"source": [0, 2], "target": [1, 1]}, "node 1 receives several in round 0, slot 0"),
        (TWO | {"source": [1, 0], "target": [0, 1]}, "rows: expected rows sorted by round, slot and source"),
        (
            TWO | {"source": [0, 0], "target": [1, 1], "source_lane": [0, 1], "lanes": 2},
            "node 0 sends several in round 0, slot 0",
        ),
    ],
)
def test_what_is_no_schedule(changes, message):
    with pytest.raises(ValueError, match="expected") as caught:
        one_message(**changes)
    assert message in str(caught.value)


def test_pieces_of_one_message_are_no_clash():
    schedule = one_message(
        round=[0, 0], slot=[0, 0], source=[0, 0], target=[1, 1], first=[0, 1], count=[1, 1]
    )
    assert schedule.starts.tolist() == [0]
    np.testing.assert_array_equal(np.add.reduceat(schedule.shares, schedule.starts), [1.0])


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (3,)])
def test_data_of_the_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"data: expected shape \[3, 2·k\]; got"):
        execute(one_message(), np.zeros(shape))
