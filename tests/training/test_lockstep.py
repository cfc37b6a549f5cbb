"""Groups in lockstep against sets that are merged by hand, rank by rank."""

import itertools

import numpy as np
import pytest

from mc.training import Lockstep, lockstep
from mc.transformer import Experts, Transformer
from tests.parallel.plans import plan

SHAPE = Transformer(
    layers=8, hidden=512, heads=8, kv_heads=8, head_dim=64, ffn=1024, vocab=1024,
    experts=Experts(count=8, top_k=2, ffn=512),
)  # fmt: skip


def coordinates(order, sizes, rank):
    """Which tp, cp, dp and pp a rank has: innermost first, as a number with mixed digits."""
    found = {}
    for name in order:
        found[name] = rank % sizes[name]
        rank //= sizes[name]
    return found


def brute_force(order, sizes, experts):
    """The groups of each stage: ranks of a replica, and of one block of experts inside the stage, are merged."""
    ranks = int(np.prod(list(sizes.values())))
    parent = list(range(ranks))

    def root(rank):
        while parent[rank] != rank:
            rank = parent[rank]
        return rank

    place = {rank: coordinates(order, sizes, rank) for rank in range(ranks)}
    inside = [name for name in order if name != "pp"]

    def number(rank):
        """Of a rank among those of its stage."""
        found, times = 0, 1
        for name in inside:
            found, times = found + times * place[rank][name], times * sizes[name]
        return found

    for first, second in itertools.combinations(range(ranks), 2):
        if place[first]["pp"] != place[second]["pp"]:
            continue
        same_replica = place[first]["dp"] == place[second]["dp"]
        if same_replica or number(first) // experts == number(second) // experts:
            parent[root(second)] = root(first)
    groups = {}
    for rank in range(ranks):
        groups.setdefault((place[rank]["pp"], root(rank)), set()).add(rank)
    stages = [set() for _ in range(sizes["pp"])]
    for (stage, _), members in groups.items():
        stages[stage].add(frozenset(members))
    return stages, place


@pytest.mark.parametrize("experts", [(1, 1), (2, 1), (4, 1), (2, 2), (8, 1)])
@pytest.mark.parametrize(
    "order",
    [
        ("tp", "cp", "dp", "pp"),
        ("tp", "cp", "pp", "dp"),
        ("tp", "pp", "dp", "cp"),
        ("pp", "dp", "cp", "tp"),
        ("dp", "tp", "cp", "pp"),
        ("cp", "dp", "tp", "pp"),
    ],
)
def test_members_are_those_of_merged_sets(order, experts):
    ep, etp = experts
    sizes = {"tp": 2, "cp": 2, "dp": 4, "pp": 2}
    keys = {"tp": 2, "cp": 2, "pp": 2, "order": order, "ep": ep, "etp": etp, "global_batch": 8}
    found = lockstep(plan(SHAPE, 32, **keys))
    expected, place = brute_force(order, sizes, ep * etp)
    assert (found.stages, found.replicas) == (2, len(expected[0]))
    assert found.replicas * found.ranks == 16
    for stage in range(2):
        assert {frozenset(group.tolist()) for group in found.members[stage]} == expected[stage]
        assert {place[rank]["pp"] for rank in found.members[stage].ravel().tolist()} == {stage}
    # A pipeline runs through ranks that differ in their stage alone.
    for first, second in zip(*found.members, strict=True):
        ahead, behind = (
            {tuple(place[rank][name] for name in ("tp", "cp", "dp")) for rank in group.tolist()}
            for group in (first, second)
        )
        assert ahead == behind


def test_units_are_those_of_the_ranks():
    rng = np.random.default_rng(4)
    members = rng.permutation(48).reshape(2, 3, 8)
    for most in (1, 3, 20):
        unit = rng.integers(0, most, 48)
        units = Lockstep(members).units(unit)
        sets = [[set(unit[group].tolist()) for group in stage] for stage in members]
        assert [[set(row.tolist()) for row in stage] for stage in units] == sets
        assert units.shape[2] == max(len(each) for stage in sets for each in stage)
