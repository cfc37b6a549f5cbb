"""Steps as sums of few durations: what the recursion gives, inside of every cone and beyond, one at a time and many."""

import importlib

import numpy as np
import pytest

from mc.pipeline import Transfer, by_kind, critical, levels_of, makespan_of
from mc.pipeline.critical import Critical
from mc.pipeline.many import run_many
from tests.pipeline.cases import CASES, EACH, name

MODULE = importlib.import_module("mc.pipeline.critical")
SETS = 24


def sorts_of(order):
    """The first and the last part of a model are of sorts of their own."""
    part = order.part
    return tuple(
        tuple(0 if each == 0 else 2 if each == order.parts - 1 else 1 for each in row)
        for row in part.tolist()
    )


def durations_of(sorts, seed, *, messages=True):
    """A column for each set; some of them on the edge of cones, with messages of no time or alike."""
    rng = np.random.default_rng(seed)
    number = max(map(max, sorts)) + 1
    found = [rng.uniform(0.5, 2.0, (3 * number, SETS))]
    if messages:
        late = rng.uniform(0.0, 0.5, (2, SETS))
        late[:, ::5] = 0.0
        late[1, ::3] = late[0, ::3]
        found.append(late)
    return np.concatenate(found)


def expected(levels, sorts, column, blocking):
    sort, number = np.array(sorts), max(map(max, sorts)) + 1
    each = [column[sort + place * number] for place in range(3)]
    transfer = None if blocking is None else Transfer(column[-2], column[-1], blocking)
    return makespan_of(levels, by_kind(*sort.shape, *each), transfer=transfer)


def agree(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert np.asarray(one) == pytest.approx(np.asarray(other), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("blocking", [None, False, True])
@pytest.mark.parametrize("case", CASES, ids=name)
def test_it_is_what_the_recursion_finds(case, blocking):
    levels = levels_of(*case)
    sorts = sorts_of(levels.order)
    durations = durations_of(sorts, 1, messages=blocking is not None)
    some = Critical(levels, sorts, blocking=blocking)
    many = [some.finish(durations) for _ in range(4)][-1]
    for place, column in enumerate(durations.T):
        wanted = expected(levels, sorts, column, blocking)
        agree([np.asarray(times)[..., place] for times in many], wanted)
        agree(some.finish(column), wanted)


def test_every_cone_holds_what_it_says():
    # Inside of a cone its sums are the times, not only for the durations that it was found with.
    levels = levels_of("interleaved", 3, 6, 3)
    sorts = sorts_of(levels.order)
    some = Critical(levels, sorts, blocking=False)
    for seed in range(6):
        some.finish(durations_of(sorts, seed))
    assert len(some.cones) > 1
    near = np.tile(np.concatenate([durations_of(sorts, seed) for seed in range(6)], axis=1), 10)
    near *= np.random.default_rng(9).lognormal(0.0, 0.1, near.shape)
    inside = [(cone.sides @ near).min(axis=0) >= 0 for cone in some.cones]
    held = 0
    for cone, mine in zip(some.cones, inside, strict=True):
        for column in near[:, mine].T[:10]:
            wanted = expected(levels, sorts, column, False)
            times = np.concatenate(
                [np.ravel(wanted.end), wanted.first_start.ravel(), wanted.gradient_end.ravel()]
            )
            assert cone.sums @ column == pytest.approx(times, rel=1e-12, abs=1e-12)
            held += 1
    assert held > 10


def test_a_cone_ends_at_its_sides():
    # Beyond, something that was waited for in vain is what decides: the sums are too small.
    levels = levels_of("1f1b", 3, 5)
    sorts = ((0,), (1,), (2,))
    some = Critical(levels, sorts, blocking=False)
    durations = durations_of(sorts, 2)
    some.finish(durations)
    cone = some.cones[0]
    outside = (cone.sides @ durations).min(axis=0) < -1e-9
    assert outside.any()
    for column in durations[:, outside].T:
        wanted = expected(levels, sorts, column, False)
        assert (cone.sums[:3] @ column <= wanted.end + 1e-12).all()


def test_equal_stages_without_messages_need_one_cone():
    levels = levels_of("1f1b", 8, 32)
    some = critical(levels, ((0,),) * 8)
    # Whatever a forward and a backward take: (p - 1)(F + B) of idle time.
    for forward, inputs, weights in np.random.default_rng(3).exponential(1.0, (20, 3)):
        found = some.finish(np.array([forward, inputs, weights]))
        assert found.makespan == pytest.approx(39 * (forward + inputs + weights), rel=1e-12)
    assert len(some.cones) == 1


def test_a_repeated_set_costs_no_more_runs(monkeypatch):
    levels = levels_of("zb-h1", 4, 9)
    sorts = sorts_of(levels.order)
    some = Critical(levels, sorts, blocking=True)
    column = durations_of(sorts, 4)[:, 1]
    first = [some.finish(column) for _ in range(5)]
    monkeypatch.setattr(MODULE, "makespan_of", None)
    agree(some.finish(2.0 * column), [2.0 * np.asarray(times) for times in first[0]])


@pytest.mark.parametrize("blocking", [None, False, True])
@pytest.mark.parametrize("case", EACH, ids=name)
def test_the_recursion_on_many_sets(case, blocking):
    levels = levels_of(*case)
    stages, chunks = levels.order.stages, levels.order.chunks
    rng = np.random.default_rng(5)
    table = by_kind(stages, chunks, *rng.uniform(0.5, 2.0, (4, stages, chunks, SETS)))
    late = rng.uniform(0, 0.5, (2, SETS))
    transfer = None if blocking is None else Transfer(late[0], late[1], blocking)
    found = run_many(levels, list(table.reshape(-1, SETS)), transfer)
    for place in range(0, SETS, 5):
        between = None if blocking is None else Transfer(late[0, place], late[1, place], blocking)
        one = makespan_of(levels, table[..., place], transfer=between)
        times = np.concatenate([one.end, one.first_start.ravel(), one.gradient_end.ravel()])
        assert found[:, place] == pytest.approx(times, rel=1e-12, abs=1e-12)
