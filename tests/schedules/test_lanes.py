"""Lanes say what a message waits for: the data that it carries, and nothing that comes later.

Whoever reads time off a schedule keeps one time per node and lane, that of the latest arrival. So when a piece
leaves, the last thing that arrived in its lane must be that piece.
"""

import numpy as np
import pytest

from mc.schedules import HIERARCHICAL, build

RANKS = (2, 3, 4, 5, 8, 13, 16, 33, 64, 100)
STREAMS = [("broadcast", "ring"), ("reduce", "ring"), ("all-reduce", "tree")]


def late_or_early(schedule) -> list[int]:
    """Rows that leave when the last arrival in their lane is another piece, or with a part still to come."""
    arrivals: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in range(schedule.rows):
        lane = int(schedule.target[row]), int(schedule.target_lane[row])
        arrivals.setdefault(lane, []).append((int(schedule.round[row]), int(schedule.first[row])))
    found = []
    for row in range(schedule.rows):
        lane = int(schedule.source[row]), int(schedule.source_lane[row])
        all_there = arrivals.get(lane, [])
        now, piece = int(schedule.round[row]), int(schedule.first[row])
        before = [each for each in all_there if each[0] < now]
        latest = {chunk for moment, chunk in before if moment == max(before)[0]}
        missing = any(chunk == piece and moment >= now for moment, chunk in all_there)
        if (all_there and latest != {piece}) or missing:
            found.append(row)
    return found


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(("collective", "name"), STREAMS)
def test_a_piece_leaves_right_after_it_has_arrived(collective, name, n):
    assert late_or_early(build(collective, name, n, pieces=5)) == []


def test_one_lane_would_not_do_for_two_trees():
    # Negative control: up and down in one lane, pieces wait for later ones.
    schedule = build("all-reduce", "tree", 8, pieces=5)
    object.__setattr__(schedule, "source_lane", np.zeros(schedule.rows, np.int8))
    object.__setattr__(schedule, "target_lane", np.zeros(schedule.rows, np.int8))
    assert late_or_early(schedule)


@pytest.mark.parametrize("units", [(4,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"])
def test_each_part_of_a_buffer_stays_in_its_lane(collective, units):
    # Lanes of rings do not wait for each other, so no chunk may go from one to another.
    n = int(np.prod(units))
    schedules = [build(collective, "multi-ring", n, units=units)]
    if collective not in ("broadcast", "reduce"):
        schedules.append(build(collective, "bidirectional-ring", n))
    for schedule in schedules:
        np.testing.assert_array_equal(schedule.source_lane, schedule.target_lane)
        lane_of = np.full(schedule.chunks, -1)
        for first, count, lane in zip(schedule.first, schedule.count, schedule.source_lane, strict=True):
            part = lane_of[(first + np.arange(count)) % schedule.chunks]
            assert set(part.tolist()) <= {-1, int(lane)}
            lane_of[(first + np.arange(count)) % schedule.chunks] = lane


def test_a_composition_joins_lanes_between_its_stages():
    units, algorithms = ((2, 2), 3), ("multi-ring", "ring", "multi-ring")
    schedule = build("all-reduce", HIERARCHICAL, 12, units=units, algorithms=algorithms)
    inside, across = 2, 4
    assert schedule.lanes == 4
    assert schedule.joins == (inside, inside + across)
    assert schedule.rounds == 2 * inside + across
