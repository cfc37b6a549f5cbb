"""Collectives on tiers: flat, hierarchical, through switches; phases, and the choice among them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives import (
    ALGORITHMS,
    CollectiveError,
    bus_factor,
    cost,
    evaluate,
    phases,
    phases_of,
    select,
    stages,
)
from mc.collectives.candidates import candidates
from mc.errors import InputError
from mc.fabric import Cluster, Link, Tier
from mc.schedules import build, counts

NODE, UNIT, POD = Link(1e-6, 450e9), Link(5e-6, 50e9), Link(8e-6, 25e9)
PLAIN = Cluster("plain", (Tier("node", NODE, 8), Tier("unit", UNIT, 32), Tier("pod", POD, 4)))
SWITCHED = Cluster(
    "switched",
    (
        Tier("node", NODE, 8, hop_latency=3e-7, reduction_radix=8),
        Tier("unit", UNIT, 32, hop_latency=7e-7, reduction_radix=16),
        Tier("pod", POD, 4),
    ),
)
SIZE = float(64 * 2**20)


def seconds(cluster, collective, ranks, size, algorithm="auto") -> float:
    return float(cost(cluster, collective, ranks, size, algorithm).time)


def test_hierarchical_all_reduce_on_8_by_32():
    # By hand, with large messages so that halving-doubling (fewest bytes, then fewest rounds) is the fastest
    # on each tier: log₂ 8 rounds in and 3 out with 7/8·B each way; 2·log₂ 32 rounds across with 2·31/32 of
    # B/8.
    inside = 2 * (3 * 1e-6 + 7 / 8 * SIZE / 450e9)
    across = 10 * 5e-6 + 2 * 31 / 32 * (SIZE / 8) / 50e9
    assert seconds(PLAIN, "all-reduce", 256, SIZE, "hierarchical") == pytest.approx(inside + across, rel=1e-6)
    found = phases(PLAIN, "all-reduce", 256, SIZE, "hierarchical")
    assert [
        (each.tier_index, each.tier_name, each.collective, each.algorithm, each.units) for each in found
    ] == [
        (0, "node", "reduce-scatter", "recursive-halving", 8),
        (1, "unit", "all-reduce", "halving-doubling", 32),
        (0, "node", "all-gather", "recursive-doubling", 8),
    ]
    # All bytes that a rank sends: 2·(7/8 + 31/32/8) = 2·255/256: as few as any algorithm can.
    assert sum(float(each.bytes_per_rank) for each in found) == pytest.approx(2 * 255 / 256 * SIZE, rel=1e-6)


@pytest.mark.parametrize(
    ("collective", "wanted"),
    [
        (
            "reduce-scatter",
            lambda B: (
                3e-6
                + 7 / 8 * B / 450e9
                + 5 * 5e-6
                + 31 / 32 * B / 8 / 50e9
                + 2 * 8e-6
                + 3 / 4 * B / 256 / 25e9
            ),
        ),
        (
            "all-gather",
            lambda B: (
                3e-6
                + 7 / 8 * B / 450e9
                + 5 * 5e-6
                + 31 / 32 * B / 8 / 50e9
                + 2 * 8e-6
                + 3 / 4 * B / 256 / 25e9
            ),
        ),
        (
            "all-to-all",
            lambda B: 1e-6 + 7 / 8 * B / 450e9 + 5e-6 + 31 / 32 * B / 50e9 + 8e-6 + 3 / 4 * B / 25e9,
        ),
        # Chains: n − 1 latencies and B once, cheaper than a binomial tree's log₂ n·B here.
        ("reduce", lambda B: 7e-6 + B / 450e9 + 31 * 5e-6 + B / 50e9 + 3 * 8e-6 + B / 25e9),
        ("broadcast", lambda B: 7e-6 + B / 450e9 + 31 * 5e-6 + B / 50e9 + 3 * 8e-6 + B / 25e9),
    ],
)
def test_hierarchical_on_three_tiers(collective, wanted):
    assert seconds(PLAIN, collective, 1024, SIZE, "hierarchical") == pytest.approx(wanted(SIZE), rel=1e-6)


def test_hierarchical_barrier():
    # Up the node (k-ary, k = 4: 2 rounds), dissemination across (5 and 2), down the node.
    found = phases(PLAIN, "barrier", 1024, 0.0, "hierarchical")
    assert sum(float(each.latency_time) for each in found) == pytest.approx(
        2 * 1e-6 + 2 * 3 * 5e-6 + 2 * 8e-6 + 2 * 1e-6, rel=1e-6
    )
    assert sum(float(each.bytes_per_rank) for each in found) == 0.0


def test_a_hierarchical_all_reduce_adds_up():
    # The bytes of the phases are those that the messages of the composition carry.
    inner, outer, size = 4, 6, 96e6
    n = inner * outer
    schedule = build(
        "all-reduce",
        "hierarchical",
        n,
        units=(inner, outer),
        algorithms=("recursive-halving", "halving-doubling", "recursive-doubling"),
    )
    cluster = Cluster("c", (Tier("a", NODE, inner), Tier("b", UNIT, outer)))
    found = cost(cluster, "all-reduce", n, size, "hierarchical")
    assert float(found.bytes_per_rank) == pytest.approx(counts(schedule).sent.mean() * size, rel=1e-6)


def test_flat_algorithms_pay_for_the_outermost_tier():
    n = 256
    wanted = 2 * (n - 1) * 5e-6 + 2 * (n - 1) / n * SIZE / 50e9
    (phase,) = phases(PLAIN, "all-reduce", n, SIZE, "ring")
    assert seconds(PLAIN, "all-reduce", n, SIZE, "ring") == pytest.approx(wanted, rel=1e-6)
    assert (phase.tier_name, phase.units, int(phase.rounds)) == ("unit", n, 2 * (n - 1))
    # The smallest bandwidth counts, wherever it is: here it is inside.
    narrow = Cluster("n", (Tier("in", Link(1e-6, 1e9), 8), Tier("out", Link(5e-6, 50e9), 4)))
    wanted = 62 * 5e-6 + 62 / 32 * SIZE / 1e9
    assert seconds(narrow, "all-reduce", 32, SIZE, "ring") == pytest.approx(wanted, rel=1e-6)
    # A group inside one node meets nothing else.
    assert seconds(narrow, "all-reduce", 8, SIZE, "ring") == pytest.approx(
        14e-6 + 14 / 8 * SIZE / 1e9, rel=1e-6
    )


def test_in_network_goes_through_the_switches_of_each_tier():
    # Hops: one level of radix 8 over 8, two levels of radix 16 over 32; up and down. Streams: B in the node,
    # B/8 on each NIC.
    found = phases(SWITCHED, "all-reduce", 256, SIZE, "in-network")
    assert [(each.tier_name, each.units, int(each.rounds)) for each in found] == [
        ("node", 8, 2),
        ("unit", 32, 4),
    ]
    assert [float(each.latency_time) for each in found] == pytest.approx([2 * 3e-7, 4 * 7e-7], rel=1e-6)
    # 450 GB/s inside against 8 x 50 GB/s outside: the latter is slower, and all that is paid.
    assert [float(each.bandwidth_time) for each in found] == pytest.approx([0.0, SIZE / 400e9], rel=1e-6)
    assert seconds(SWITCHED, "reduce", 256, SIZE, "in-network") == pytest.approx(
        3e-7 + 2 * 7e-7 + SIZE / 400e9, rel=1e-6
    )
    # Nine ranks leave one alone in its node: its only link carries the whole stream.
    assert float(phases(SWITCHED, "all-reduce", 9, SIZE, "in-network")[1].bandwidth_time) == pytest.approx(
        SIZE / 50e9, rel=1e-6
    )


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
@pytest.mark.parametrize("ranks", [1, 12, 256])
def test_phases_add_up_and_auto_is_the_fastest(collective, ranks):
    @jax.jit
    def flat_phases(size):
        return {name: phases(SWITCHED, collective, ranks, size, name) for name in flat}

    for size in (0.0, 1e3, 1e8):
        rows = evaluate(SWITCHED, collective, ranks, size)
        times = [row.time for row in rows]
        assert times == sorted(times)
        # Flat ones need no numbers, so one compilation serves all sizes; the hierarchical one is chosen anew.
        flat = [row.algorithm for row in rows if row.algorithm != "hierarchical"]
        found_flat = flat_phases(size)
        for row in rows:
            found = found_flat.get(row.algorithm) or phases(SWITCHED, collective, ranks, size, row.algorithm)
            parts = [p.latency_time + p.bandwidth_time + p.reduction_time for p in found]
            assert float(sum(parts)) == pytest.approx(row.time, rel=1e-6)
            assert sum(int(p.rounds) for p in found) == row.rounds
            assert float(sum(p.bytes_per_rank for p in found)) == pytest.approx(row.bytes_per_rank, rel=1e-6)
        assert seconds(SWITCHED, collective, ranks, size) == pytest.approx(times[0], rel=1e-6)
        (fastest,) = evaluate(SWITCHED, collective, ranks, size, "auto")
        assert fastest.time == times[0]
        assert fastest.algorithm == select(SWITCHED, collective, ranks, size)


def test_what_can_serve_a_group():
    def names(cluster, ranks):
        # What `evaluate` prices, without the prices.
        found = candidates(cluster, "all-reduce", ranks)
        return {name for name, _ in found.flat} | ({"hierarchical"} if found.slots else set())

    flat = set(ALGORITHMS["all-reduce"]) - {"in-network"}
    assert names(PLAIN, 8) == flat
    assert names(PLAIN, 12) == flat | {"hierarchical"}  # uneven
    assert names(PLAIN, 16) == flat | {"hierarchical"}
    assert names(SWITCHED, 8) == flat | {"in-network"}
    assert names(SWITCHED, 256) == flat | {"in-network", "hierarchical"}
    assert names(SWITCHED, 1024) == flat | {"hierarchical"}  # the pod's switches do not reduce
    assert names(SWITCHED, 1) == flat


def test_small_messages_take_few_rounds_and_large_ones_few_bytes():
    assert select(PLAIN, "all-reduce", 8, 8.0) == "recursive-doubling"
    assert select(PLAIN, "all-reduce", 8, 1e9) == "halving-doubling"
    assert select(PLAIN, "all-reduce", 7, 1e9) == "ring"
    assert select(PLAIN, "broadcast", 8, 1e9) == "ring"
    assert select(PLAIN, "all-to-all", 8, 8.0) == "direct"


def test_reduction_time_is_paid_by_ranks_only():
    slow = eqx.tree_at(lambda c: c.reduction_time_per_byte, SWITCHED, jnp.asarray(1e-9))
    assert float(cost(slow, "all-reduce", 8, SIZE, "ring").reduction_time) == pytest.approx(
        7 / 8 * SIZE * 1e-9
    )
    assert float(cost(slow, "all-reduce", 8, SIZE, "in-network").reduction_time) == 0.0


def test_chosen_stages_compile_once_and_differentiate():
    chosen = stages(PLAIN, "all-reduce", 256, SIZE, "hierarchical")

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def time_and_gradient(cluster, size):
        def time(cluster):
            found = phases_of(cluster, chosen, size)
            return sum(p.latency_time + p.bandwidth_time + p.reduction_time for p in found)

        return jax.value_and_grad(time)(cluster)

    for size in np.geomspace(1e6, 1e9, 8):
        _, gradient = time_and_gradient(PLAIN, jnp.asarray(size))
        assert float(gradient.tiers[0].link.latency) == pytest.approx(6.0)
        assert float(gradient.tiers[1].link.latency) == pytest.approx(10.0)
        wanted = -2 * 31 / 32 * size / 8 / 50e9**2
        assert float(gradient.tiers[1].link.bandwidth) == pytest.approx(wanted, rel=1e-5)
        assert float(gradient.tiers[2].link.latency) == 0.0


def test_a_flat_algorithm_needs_no_numbers():
    time = jax.jit(lambda size: cost(PLAIN, "all-reduce", 256, size, "ring").time)
    assert float(time(SIZE)) == pytest.approx(seconds(PLAIN, "all-reduce", 256, SIZE, "ring"), rel=1e-6)


def test_a_choice_needs_numbers():
    for algorithm in ("auto", "hierarchical"):
        with pytest.raises(
            CollectiveError, match="expected numbers to choose an algorithm by; got traced values"
        ):
            jax.jit(lambda size, a=algorithm: cost(PLAIN, "all-reduce", 256, size, a).time)(SIZE)


@pytest.mark.parametrize(
    ("collective", "ranks", "algorithm", "message"),
    [
        ("all-reduc", 8, "ring", "unknown collective `all-reduc`; did you mean `all-reduce`?"),
        ("all-reduce", 8, "rng", "unknown algorithm `rng` for all-reduce; did you mean `ring`?"),
        (
            "all-gather",
            8,
            "tree",
            "unknown algorithm `tree` for all-gather; expected one of ring, bidirectional-ring, recursive-doubling, "
            "multi-ring, direct, hierarchical, auto",
        ),
        (
            "all-reduce",
            1024,
            "in-network",
            "in-network all-reduce: expected a reduction_radix on every tier that 1024 ranks span; `pod` has none",
        ),
        (
            "all-gather",
            12,
            "hierarchical",
            "hierarchical all-gather: expected a group that fills every unit it spans; "
            "12 ranks on 8 (node) x 2 (unit) do not",
        ),
        (
            "all-reduce",
            8,
            "hierarchical",
            "hierarchical all-reduce: expected a group that spans two tiers or more; 8 ranks span 8 (node)",
        ),
        (
            "send-recv",
            256,
            "hierarchical",
            "hierarchical send-recv: a send-recv is one message; expected another collective",
        ),
        (
            "all-reduce",
            2048,
            "auto",
            "ranks: expected at most 8 x 32 x 4 = 1024, the size of `switched`; a group of 2048 does not fit",
        ),
    ],
)
def test_refusals(collective, ranks, algorithm, message):
    for ask in (evaluate, phases):
        with pytest.raises(InputError) as caught:
            ask(SWITCHED, collective, ranks, SIZE, algorithm)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("all-reduce", 2 * 7 / 8),
        ("all-gather", 7 / 8),
        ("reduce-scatter", 7 / 8),
        ("all-to-all", 7 / 8),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send-recv", 1.0),
    ],
)
def test_bandwidths_as_nccl_tests_has_them(collective, factor):
    assert bus_factor(collective, 8) == pytest.approx(factor)
    for row in evaluate(PLAIN, collective, 8, SIZE):
        assert row.algorithm_bandwidth == pytest.approx(SIZE / row.time)
        assert row.bus_bandwidth == pytest.approx(factor * SIZE / row.time)


def test_bus_bandwidth_of_a_large_ring_is_that_of_the_link():
    (row,) = evaluate(PLAIN, "all-reduce", 8, 1e13, "ring")
    assert row.bus_bandwidth == pytest.approx(450e9, rel=1e-3)


def test_one_rank_has_no_bandwidth():
    for row in evaluate(PLAIN, "all-reduce", 1, SIZE):
        assert (row.time, row.algorithm_bandwidth, row.bus_bandwidth, row.rounds) == (0.0, None, None, 0)
