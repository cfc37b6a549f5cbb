"""Units that differ: compositions carried out on real numbers, costs by hand, and the slowest that decides."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives import CollectiveError, algorithms, cost, evaluate, phases, phases_of, stages
from mc.config import load_cluster
from mc.fabric import Cluster, FullyConnected, Link, Tier, Variation, build_cluster
from mc.schedules import build, counts, execute

INSIDE, ACROSS = Link(1e-6, 450e9), Link(5e-6, 50e9)
SIZE = 64e6


def hall(sizes, *, inner=(), outer=(), **options) -> Cluster:
    tiers = (
        Tier("node", INSIDE, sizes, variations=inner, **options),
        Tier("hall", ACROSS, len(sizes), variations=outer),
    )
    return Cluster("hall", tiers)


def seconds(
    cluster: Cluster, collective: str, name: str, ranks: int | None = None, size: float = SIZE
) -> float:
    return float(cost(cluster, collective, ranks or cluster.size, size, name).time)


@pytest.mark.parametrize("sizes", [(8, 8, 7), (4, 3), (2, 5, 3, 2), (3, 3)])
def test_an_all_reduce_in_parts_of_the_smallest_adds_up(sizes):
    parts, width = min(sizes), 6
    generator = np.random.default_rng(11)
    data = [generator.integers(0, 1000, (size, parts * width)) for size in sizes]
    wanted = sum(each.sum(0) for each in data)
    held = []
    for size, each in zip(sizes, data, strict=True):
        # Padded to one part for each rank; what is beyond the parts is nobody's.
        schedule = build("reduce-scatter", "ring", size)
        assert schedule.owner is not None
        padded = np.zeros((size, size * width), int)
        padded[:, : parts * width] = each
        result = execute(schedule, padded).reshape(size, size, width)
        held.append({part: result[schedule.owner[part], part] for part in range(parts)})
    across = build("all-reduce", "ring", len(sizes))
    for part in range(parts):
        mine = np.stack([np.resize(each[part], across.chunks * width) for each in held])
        for each, row in zip(held, execute(across, mine), strict=True):
            each[part] = row[:width]
    for size, each in zip(sizes, held, strict=True):
        schedule = build("all-gather", "ring", size)
        assert schedule.owner is not None
        padded = np.zeros((size, size, width), int)
        for part, value in each.items():
            padded[schedule.owner[part], part] = value
        for row in execute(schedule, padded.reshape(size, -1)):
            np.testing.assert_array_equal(row[: parts * width], wanted)


@pytest.mark.parametrize("sizes", [(8, 8, 7), (4, 3), (2, 5, 3, 2)])
def test_rounds_and_bytes_of_the_parts(sizes):
    """The largest unit's ring carries a part in each of its rounds; a rank sends only parts that are there."""
    parts, largest, n = min(sizes), max(sizes), sum(sizes)
    whole = hall(sizes)
    chosen = [phase for phase in phases(whole, "all-reduce", n, SIZE, "hierarchical")]
    assert [phase.collective for phase in chosen] == ["reduce-scatter", "all-reduce", "all-gather"]
    first = chosen[0]
    assert float(first.bandwidth_time) == pytest.approx((largest - 1) / parts * SIZE / 450e9, rel=1e-6)
    sent = 0.0
    for size in sizes:
        schedule = build("reduce-scatter", "ring", size)
        assert counts(schedule).rounds == size - 1
        real = schedule.first < parts
        sent += float(schedule.count[real].sum()) / parts
    assert float(first.bytes_per_rank) == pytest.approx(sent / n * SIZE, rel=1e-6)


def test_eight_eight_seven_by_hand():
    # Seven parts: in a node of eight, halving takes 3 rounds and 7/8 of 8/7·B; one of seven also 3, and 6/7·B.
    inside = 3 * 1e-6 + SIZE / 450e9
    # A seventh of the buffer among three nodes: fewest bytes by a ring.
    across = 4 * 5e-6 + 2 * 2 / 3 * SIZE / 7 / 50e9
    assert seconds(hall((8, 8, 7)), "all-reduce", "hierarchical") == pytest.approx(
        2 * inside + across, rel=1e-5
    )
    # As a group that does not fill its last node.
    assert seconds(hall((8, 8, 8)), "all-reduce", "hierarchical", 23) == pytest.approx(
        2 * inside + across, rel=1e-5
    )


def test_a_node_with_one_rank_sends_leaders():
    found = phases(hall((8, 8, 1)), "all-reduce", 17, SIZE, "hierarchical")
    assert [(each.tier_name, each.collective) for each in found] == [
        ("node", "reduce"),
        ("hall", "all-reduce"),
        ("node", "broadcast"),
    ]
    chain = 7 * 1e-6 + SIZE / 450e9
    across = 4 * 5e-6 + 2 * 2 / 3 * SIZE / 50e9
    assert sum(float(each.cost.time) for each in found) == pytest.approx(2 * chain + across, rel=1e-6)


@pytest.mark.parametrize("collective", ["all-reduce", "reduce", "broadcast", "barrier"])
def test_equal_sizes_cost_what_they_cost(collective):
    # One number or a list of equal numbers.
    size = 0.0 if collective == "barrier" else SIZE
    plain = Cluster("plain", (Tier("node", INSIDE, 8), Tier("hall", ACROSS, 3)))
    same = seconds(hall((8, 8, 8)), collective, "hierarchical", size=size)
    assert same == pytest.approx(seconds(plain, collective, "hierarchical", size=size), rel=1e-7)


def test_what_needs_equal_parts_goes_flat():
    whole = hall((8, 8, 7))
    assert "hierarchical" not in {row.algorithm for row in evaluate(whole, "all-gather", 23, SIZE)}
    for collective in ("all-gather", "reduce-scatter", "all-to-all"):
        with pytest.raises(CollectiveError) as caught:
            evaluate(whole, collective, 23, SIZE, "hierarchical")
        assert str(caught.value) == (
            f"hierarchical {collective}: expected a group that fills every unit it spans; "
            "23 ranks on 8 (node) x 3 (hall) do not"
        )


def test_in_network_streams_are_as_wide_as_the_smallest_unit():
    tiers = (Tier("node", INSIDE, (8, 8, 2), reduction_radix=8), Tier("hall", ACROSS, 3, reduction_radix=8))
    found = phases(Cluster("s", tiers), "all-reduce", 18, SIZE, "in-network")
    # Two links take the whole stream of the smallest node.
    assert float(found[1].bandwidth_time) == pytest.approx(SIZE / 2 / 50e9, rel=1e-6)


SLOW = Variation((1,), 0, latency_factor=3.0, bandwidth_factor=0.25)


def test_flat_algorithms_wait_for_the_slowest_link():
    outer = hall((4, 4, 4), outer=(SLOW,))
    found = seconds(outer, "all-reduce", "ring")
    assert found == pytest.approx(22 * 15e-6 + 22 / 12 * SIZE / 12.5e9, rel=1e-6)
    # The slow node is not in the group, or is; the first alone does not leave itself.
    assert seconds(outer, "all-reduce", "ring", 4) == pytest.approx(6 * 1e-6 + 6 / 4 * SIZE / 450e9, rel=1e-6)
    assert seconds(outer, "all-reduce", "ring", 5) == pytest.approx(
        8 * 15e-6 + 8 / 5 * SIZE / 12.5e9, rel=1e-6
    )
    inner = hall((4, 4, 4), inner=(Variation((1,), 0, 3.0, 0.05),))
    # Inside, only the bandwidth counts: the round waits for the network anyway.
    found = seconds(inner, "all-reduce", "ring")
    assert found == pytest.approx(22 * 5e-6 + 22 / 12 * SIZE / 22.5e9, rel=1e-6)


def test_the_slowest_unit_decides_a_hierarchical_collective():
    whole = hall((4, 4, 4), inner=(SLOW,))
    found = phases(whole, "all-reduce", 12, SIZE, "hierarchical")
    inside = 2 * 3e-6 + 3 / 4 * SIZE / (450e9 / 4)
    assert [float(found[each].cost.time) for each in (0, 2)] == pytest.approx([inside] * 2, rel=1e-6)
    # A large unit with good links against a small one with bad ones: whichever takes longer.
    for factor in (0.9, 0.2):
        mixed = hall((8, 2), inner=(Variation((1,), 0, 1.0, factor),))
        first = phases(mixed, "all-reduce", 10, SIZE, "hierarchical")[0]
        large, small = 7 / 2 * SIZE / 450e9, 1 / 2 * SIZE / 450e9 / factor
        assert float(first.bandwidth_time) == pytest.approx(max(large, small), rel=1e-5)


def test_two_variations_of_one_rank_multiply():
    whole = hall((4, 4), outer=(Variation((0,), 0, 2.0, 0.5), Variation((3,), -1, 5.0, 0.1)))
    found = seconds(whole, "all-reduce", "ring")
    assert found == pytest.approx(14 * 50e-6 + 14 / 8 * SIZE / 2.5e9, rel=1e-6)


def test_hops_of_slow_switches_take_longer():
    tiers = (
        Tier(
            "node", INSIDE, 8, reduction_radix=8, hop_latency=1e-7, variations=(Variation((2,), 0, 4.0, 1.0),)
        ),
        Tier("hall", ACROSS, 3, reduction_radix=8),
    )
    whole = Cluster("s", tiers)
    for ranks, factor in ((16, 1), (24, 4)):
        found = phases(whole, "all-reduce", ranks, SIZE, "in-network")
        assert float(found[0].latency_time) == pytest.approx(2 * factor * 1e-7, rel=1e-6)


def test_a_mesh_that_misses_a_chip():
    whole = Cluster(
        "mi",
        (Tier("node", INSIDE, (8, 7), shape=FullyConnected()), Tier("hall", ACROSS, 2)),
    )
    first = phases(whole, "all-reduce", 15, SIZE, "hierarchical")[0]
    # Seven parts on links of a seventh each: B/7 on one link, in either node.
    assert first.algorithm == "direct"
    assert float(first.bandwidth_time) == pytest.approx(SIZE / 7 / (450e9 / 7), rel=1e-6)


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "all-to-all"])
def test_worse_links_never_help(collective):
    plain, worse = hall((4, 4, 3)), hall((4, 4, 3), inner=(SLOW,), outer=(SLOW,))
    for name in algorithms(collective):
        if name != "in-network":
            assert seconds(worse, collective, name) > seconds(plain, collective, name)


def test_factors_are_traced_and_have_gradients():
    whole = hall((8, 8, 7), inner=(SLOW,), outer=(SLOW,))
    chosen = stages(whole, "all-reduce", 23, SIZE, "hierarchical")

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def time_and_gradient(cluster):
        def time(cluster):
            return sum(phase.cost.time for phase in phases_of(cluster, chosen, SIZE))

        return jax.value_and_grad(time)(cluster)

    for factor in (0.25, 0.5):
        changed = eqx.tree_at(
            lambda c: c.tiers[1].variations[0].bandwidth_factor, whole, jnp.asarray(factor, jnp.float32)
        )
        time, gradient = time_and_gradient(changed)
        assert np.isfinite(float(time))
        # d/df of x/(f·w) is −x/(f²·w).
        wanted = -2 * 2 / 3 * SIZE / 7 / 50e9 / factor**2
        assert float(gradient.tiers[1].variations[0].bandwidth_factor) == pytest.approx(wanted, rel=1e-4)


def test_the_shipped_example():
    whole = build_cluster(load_cluster("mixed-generations"))
    assert whole.size == 247
    # Racks leave by 50 GB/s each way at 2:1; one at half of that, so 12.5 GB/s decides.
    found = float(cost(whole, "all-reduce", 247, SIZE, "ring", protocol="none").time)
    assert found == pytest.approx(2 * 246 * 2.7e-6 * 1.5 + 2 * 246 / 247 * SIZE / 12.5e9, rel=1e-3)
    # Without the exceptions it would be faster.
    plain = build_cluster(
        load_cluster("mixed-generations", [f"tiers.{tier}.exceptions=null" for tier in range(3)])
    )
    assert plain.size == 256
    for name in ("ring", "tree"):
        (before, after) = (
            cost(each, "all-reduce", 247, SIZE, name, protocol="Simple") for each in (plain, whole)
        )
        assert float(before.time) < float(after.time)
