"""Where ranks are, against nested lists of them."""

import numpy as np
import pytest

from mc.fabric import (
    Cluster,
    FabricError,
    Link,
    Tier,
    Torus,
    Variation,
    crossing,
    hops,
    unit_of,
)
from tests.fabric.grids import place

LINK = Link(1e-6, 1e9)


def cluster(*fan_outs, **options) -> Cluster:
    return Cluster("c", tuple(Tier(f"t{i}", LINK, each, **options) for i, each in enumerate(fan_outs)))


CLUSTERS = [
    cluster(4),
    cluster(3, 4, 2),
    cluster((4, 4, 3, 1), 2, 2),
    cluster(2, (3, 1, 2), 3),
    cluster((1, 2, 3, 4, 5, 6), (4, 2), 2),
]


def paths(whole: Cluster) -> list[tuple[int, ...]]:
    """Per rank, the numbers of its units, innermost first, counted by walking through the cluster."""
    counters = [0] * len(whole.tiers)
    found: list[tuple[int, ...]] = []

    def walk(tier: int, outer: tuple[int, ...]) -> None:
        if tier < 0:
            found.append(outer)
            return
        mine = counters[tier]
        counters[tier] += 1
        own = whole.fan_outs[tier]
        for _ in range(own if isinstance(own, int) else own[mine]):
            walk(tier - 1, (mine, *outer))

    walk(len(whole.tiers) - 1, ())
    return found


@pytest.mark.parametrize("whole", CLUSTERS, ids=lambda each: each.size_text)
def test_units_and_crossings_by_walking(whole):
    where = paths(whole)
    assert whole.size == len(where)
    ranks = np.arange(whole.size)
    for tier in range(len(whole.tiers)):
        np.testing.assert_array_equal(unit_of(whole, tier, ranks), [path[tier] for path in where])
    np.testing.assert_array_equal(unit_of(whole, -1, ranks), ranks)
    found = crossing(whole, ranks[:, None], ranks)
    assert found.dtype == np.int8
    for one in ranks:
        for other in ranks:
            # The innermost tier that has both in one unit; none for a rank and itself.
            joint = [tier for tier in range(len(whole.tiers)) if where[one][tier] == where[other][tier]]
            assert found[one, other] == (-1 if one == other else min(joint))
    np.testing.assert_array_equal(hops(whole, ranks[:, None], ranks), found >= 0)


def test_hops_on_a_torus_inside_and_outside():
    torus = Torus((4, 3))
    inside = Cluster("i", (Tier("chips", LINK, 12, shape=torus), Tier("slices", LINK, 3)))
    outside = Cluster(
        "o", (Tier("node", LINK, 2), Tier("nodes", LINK, 12, shape=torus), Tier("hall", LINK, 2))
    )

    def apart(one: int, other: int) -> int:
        steps = zip(place(torus, one), place(torus, other), torus.dims, strict=True)
        return sum(min((a - b) % extent, (b - a) % extent) for a, b, extent in steps)

    found = hops(inside, np.arange(36)[:, None], np.arange(36))
    for one in range(36):
        for other in range(36):
            same = one // 12 == other // 12
            assert found[one, other] == (apart(one % 12, other % 12) if same else 1)
    found = hops(outside, np.arange(48)[:, None], np.arange(48))
    for one in range(48):
        for other in range(48):
            if one // 24 != other // 24:
                wanted = 1
            elif one // 2 == other // 2:
                wanted = int(one != other)
            else:
                wanted = apart(one // 2 % 12, other // 2 % 12)
            assert found[one, other] == wanted


def test_a_large_cluster_takes_one_call():
    whole = cluster(8, 2, 192, 32)
    ranks = np.random.default_rng(3).integers(0, whole.size, (2, 200_000))
    found = crossing(whole, *ranks)
    for tier, below in enumerate((1, 8, 16, 3072)):
        np.testing.assert_array_equal(found >= tier, ranks[0] // below != ranks[1] // below)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: unit_of(CLUSTERS[0], 0, [0, 4]), "rank: expected ranks from 0 to 3; got 0 to 4"),
        (lambda: crossing(CLUSTERS[0], -1, 0), "rank: expected ranks from 0 to 3; got -1 to -1"),
        (lambda: unit_of(CLUSTERS[0], 1, 0), "tier: expected an index from -1 to 0; got 1"),
        (
            lambda: cluster((2, 2, 3), 2),
            "tier `t0`: fan_out: expected one number, or one for each of its 2 units; got 3",
        ),
        (lambda: cluster((2, 0), 2), "tier `t0`: fan_out: expected a whole number of at least 1; got 0"),
        (lambda: cluster((), 2), "tier `t0`: fan_out: expected a whole number of at least 1; got 0"),
        (
            lambda: cluster(2, 2, variations=(Variation((2,), 0),)),
            "tier `t0`: variations: units: expected units from 0 to 1; got 2",
        ),
        (
            lambda: cluster(2, 2, variations=(Variation((), 0),)),
            "tier `t0`: variations: units: expected units from 0 to 1; got none",
        ),
        (
            lambda: cluster(2, 2, variations=(Variation((0,), 1),)),
            "tier `t0`: variations: of: expected an index from -1 to 0; got 1",
        ),
    ],
)
def test_refusals(ask, message):
    with pytest.raises(FabricError) as caught:
        ask()
    assert str(caught.value) == message


@pytest.mark.parametrize("factors", [(-1.0, 1.0), (1.0, 0.0), (1.0, -2.0), (float("nan"), 1.0)])
def test_factors_out_of_range(factors):
    with pytest.raises(ValueError, match="factor: expected"):
        Variation((0,), 0, *factors)
