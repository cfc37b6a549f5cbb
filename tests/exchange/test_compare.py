"""Choosing under noise, and curves over sizes."""

import itertools

import jax
import numpy as np
import pytest

from mc.collectives import evaluate
from mc.delays import GeneralisedPareto
from mc.errors import InputError
from mc.exchange import choose, compare, curves, fastest_ranges, sizes_between
from mc.fabric import Cluster, Link, LinkNoise, Tier

KEY = jax.random.key(20261202)
CLUSTER = Cluster("two tiers", (Tier("node", Link(1e-6, 450e9), 8), Tier("pod", Link(4e-6, 50e9), 2)))
WILD = LinkNoise((GeneralisedPareto(5e-5, 0.49),) * 2, (None, None))
QUIET = LinkNoise((None, None), (None, None))


def test_without_noise_every_objective_agrees_with_the_closed_forms():
    rows = evaluate(CLUSTER, "all-reduce", 16, 1e6)
    for objective in ("floor", "mean", "p99"):
        ways = compare(CLUSTER, "all-reduce", 16, 1e6, QUIET, KEY, objective=objective)
        assert [way.row.algorithm for way in ways] == [row.algorithm for row in rows]


def test_the_best_floor_need_not_be_the_best_mean_nor_the_best_p99():
    """Rank after rank of a doubling waits for the slowest so far; a flat tree waits once up and once down."""
    ways = compare(CLUSTER, "all-reduce", 16, 1024.0, WILD, KEY)
    by = {goal: min(ways, key=lambda way: way.score(goal)) for goal in ("floor", "mean", "p99")}
    assert by["floor"].row.algorithm != by["p99"].row.algorithm
    assert by["p99"].score("p99") < 0.8 * by["floor"].score("p99")
    # Sorted by the objective, and the automatic choice is the first.
    means = [way.score("mean") for way in ways]
    assert means == sorted(means)
    (auto,) = compare(CLUSTER, "all-reduce", 16, 1024.0, WILD, KEY, algorithm="auto", objective="p99")
    assert auto.row.algorithm == by["p99"].row.algorithm
    assert choose(CLUSTER, "all-reduce", 16, 1024.0, WILD, KEY, objective="p99") == auto.stages


def test_one_algorithm_can_be_asked_for_and_an_unknown_one_is_named():
    (way,) = compare(CLUSTER, "all-reduce", 16, 1e6, WILD, KEY, algorithm="ring", samples=200)
    assert way.row.algorithm == "ring"
    with pytest.raises(InputError, match="unknown algorithm `rign` for all-reduce; did you mean `ring`"):
        compare(CLUSTER, "all-reduce", 16, 1e6, WILD, KEY, algorithm="rign")


def test_curves_are_the_closed_forms_over_sizes():
    sizes = sizes_between(1024.0, 1024.0 * 4**5, per_octave=0.5)
    np.testing.assert_allclose(sizes, 1024.0 * 4.0 ** np.arange(6))
    found = {curve.algorithm: curve for curve in curves(CLUSTER, "all-reduce", 16, sizes)}
    for place, size in enumerate(sizes):
        for row in evaluate(CLUSTER, "all-reduce", 16, float(size)):
            assert found[row.algorithm].floor[place] == pytest.approx(row.time, rel=1e-6)
    sampled = curves(CLUSTER, "all-reduce", 16, sizes[:2], algorithm="ring", noise=WILD, key=KEY)
    (ring,) = sampled
    assert [each.times.size for each in ring.times] == [200, 200]


def test_reigns_cover_all_sizes_and_each_is_the_fastest_inside():
    # Where a switch has no part in it, few rounds win for short messages and few bytes for long ones.
    cluster = Cluster("one tier", (Tier("pod", Link(4e-6, 50e9), 16),))
    found = fastest_ranges(cluster, "all-reduce", 16)
    assert (found[0].smallest, found[-1].largest) == (1024.0, 16 * 1024.0**3)
    for before, after in itertools.pairwise(found):
        assert before.largest == after.smallest
    assert len(found) > 1
    for each in found:
        middle = float(np.sqrt(each.smallest * each.largest))
        assert evaluate(cluster, "all-reduce", 16, middle)[0].algorithm == each.algorithm
