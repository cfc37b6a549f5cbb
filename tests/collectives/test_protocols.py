"""Algorithms under protocols: NCCL's hops and bandwidths by hand, the choice, and one compiled program."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives import (
    ALGORITHMS,
    CollectiveError,
    cost,
    envelope,
    evaluate,
    family,
    phases,
    phases_of,
    select,
    stages,
)
from mc.collectives.selection import price
from mc.config import load_cluster
from mc.errors import InputError
from mc.fabric import Cluster, Correction, Link, Plateau, Protocol, Terms, Tier, build_cluster

US, GB = 1e-6, 1e9
INSIDE = (
    Protocol(
        "quick",
        ring=Terms(7 * US, 0.6 * US, efficiency=0.4),
        tree=Terms(7 * US, 0.5 * US, efficiency=0.2, chain=True),
    ),
    Protocol(
        "wide",
        ring=Terms(8 * US, 3 * US, efficiency=0.8),
        tree=Terms(8 * US, 4 * US, efficiency=0.7, chain=True, correction=Correction(1e6, [0.5, 0.8])),
        in_network=Terms(25 * US, efficiency=0.6),
    ),
)
OUTSIDE = (
    Protocol(
        "quick",
        ring=Terms(7 * US, 2.7 * US, 1 * US, 0.5, 20 * GB),
        tree=Terms(7 * US, 5 * US, efficiency=0.25),
    ),
    Protocol(
        "wide",
        16.0,
        ring=Terms(9 * US, 14 * US, 3 * US, efficiency=0.9, plateau=Plateau(1.4, 64.0)),
        tree=Terms(9 * US, 13 * US, efficiency=0.9),
        in_network=Terms(43 * US, efficiency=0.8),
    ),
)
NODE, UNIT, POD = Link(1 * US, 400 * GB), Link(4 * US, 50 * GB), Link(8 * US, 25 * GB)


def cluster_of(inside=INSIDE, outside=OUTSIDE):
    return Cluster(
        "c",
        (
            Tier("node", NODE, 8, hop_latency=0.3 * US, reduction_radix=8, protocols=inside),
            Tier("unit", UNIT, 4, hop_latency=0.7 * US, reduction_radix=4, protocols=outside),
            Tier("pod", POD, 4, hop_latency=0.7 * US, reduction_radix=4, protocols=outside),
        ),
    )


CLUSTER = cluster_of()
PLAIN = cluster_of((), ())


def time(collective, ranks, size, algorithm, protocol, cluster=CLUSTER) -> float:
    return float(cost(cluster, collective, ranks, size, algorithm, protocol=protocol).time)


def test_a_ring_inside_a_node():
    # 14 hops; 14/8 of B at 0.4 x 400 GB/s.
    wanted = 7 * US + 14 * 0.6 * US + 14 / 8 * 1e6 / (160 * GB)
    assert time("all-reduce", 8, 1e6, "ring", "quick") == pytest.approx(wanted, rel=1e-5)


def test_a_ring_over_three_tiers():
    # 128 ranks in 16 nodes in 4 units: 2(4 − 1) hops between units, 2(16 − 4) between nodes, 2(128 − 16) inside,
    # the last of at least 1 us each. The slowest: 8 cards of 50 GB/s at one half, capped at 20 GB/s a node; a unit's
    # 32 of 25 GB/s at one half, capped likewise.
    wanted = 7 * US + (6 * 2.7 + 24 * 2.7 + 224 * 1.0) * US + 2 * 127 / 128 * 1e6 / (20 * GB)
    found = cost(CLUSTER, "all-reduce", 128, 1e6, "ring", protocol="quick")
    assert float(found.time) == pytest.approx(wanted, rel=1e-5)
    assert int(found.rounds) == 254
    # Simple-like: the plateau stretches all latency from 64 bytes for each of 16 x 32 channels and 128 ranks on.
    latency = 9 * US + (30 * 14 + 224 * 3.0) * US
    few, many = 0.9 * 64 * 16 * 8 * 128, 1.1 * 64 * 16 * 32 * 128
    bandwidth = min(0.8 * 400, 0.9 * 400, 0.9 * 800) * GB
    for size, factor in ((few, 1.0), (many, 1.4)):
        wanted = latency * factor + 2 * 127 / 128 * size / bandwidth
        assert time("all-reduce", 128, size, "ring", "wide") == pytest.approx(wanted, rel=1e-5)
    # The factor is for all-reduce only; half of the hops make an all-gather.
    wanted = 9 * US + (15 * 14 + 112 * 3.0) * US + 127 / 128 * many / bandwidth
    assert time("all-gather", 128, many, "ring", "wide") == pytest.approx(wanted, rel=1e-5)


def test_a_tree_is_a_chain_inside_and_binary_outside():
    # Chain of 8: 14 hops; 16 nodes: 2 log₂ 4 between units and as many between nodes. Twice the bytes.
    wanted = 7 * US + (14 * 0.5 + 4 * 5 + 4 * 5) * US + 2 * 1e6 / (80 * GB)
    assert time("all-reduce", 128, 1e6, "tree", "quick") == pytest.approx(wanted, rel=1e-5)
    # Two nodes: each is the root of a tree for one half, so the network carries B in each direction. The correction
    # of the inner tier is for its own bytes.
    for size, factor in ((1e6, 0.5), (2e6, 0.8), (1e8, 1.0)):
        wanted = 9 * US + (14 * 4 + 2 * 13) * US + max(2 * size / (280 * GB * factor), size / (360 * GB))
        assert time("all-reduce", 16, size, "tree", "wide") == pytest.approx(wanted, rel=1e-5)


def test_in_network_pays_its_own_base_and_switch_hops():
    # 2 hops in each tier; B in a node, B/8 of it on each card, of which the slower counts.
    wanted = 43 * US + 2 * (0.3 + 0.7) * US + 1e9 / (240 * GB)
    found = phases(CLUSTER, "all-reduce", 32, 1e9, "in-network", protocol="wide")
    assert float(sum(each.cost.time for each in found)) == pytest.approx(wanted, rel=1e-5)
    assert [each.tier_name for each in found] == ["node", "unit"]
    assert [float(each.bandwidth_time) for each in found] == pytest.approx([1e9 / (240 * GB), 0.0], rel=1e-5)


def test_channels_slow_down_small_messages():
    terms = Terms(0.0, 1 * US, efficiency=1.0, channel_size=1024.0)
    fabric = Tier("fabric", Link(1 * US, 16 * GB), 4, protocols=(Protocol("p", 16.0, ring=terms),))
    for size, part in ((512.0, 1 / 16), (4096.0, 4 / 16), (1e6, 1.0)):
        wanted = 6 * US + 6 / 4 * size / (16 * GB * part)
        assert time("all-reduce", 4, size, "ring", "p", Cluster("c", (fabric,))) == pytest.approx(
            wanted, rel=1e-5
        )


def test_algorithms_that_nccl_does_not_have_take_the_nearest_family():
    # As flat algorithms do, with the outermost hop and the smallest bandwidth per rank; a cap is shared by a node.
    assert family("binomial") == family("k-ary") == family("tree") == "tree"
    assert {family(name) for name in ("ring", "halving-doubling", "bruck", "direct")} == {"ring"}
    wanted = 7 * US + 10 * 2.7 * US + 2 * 31 / 32 * 1e6 / (20 * GB / 8)
    assert time("all-reduce", 32, 1e6, "halving-doubling", "quick") == pytest.approx(wanted, rel=1e-5)
    wanted = 9 * US + 2 * 5 * 13 * US + 2 * 5 * 1e6 / (45 * GB)
    assert time("all-reduce", 32, 1e6, "binomial", "wide") == pytest.approx(wanted, rel=1e-5)


def test_a_tier_without_a_table_stays_a_line():
    mixed = cluster_of(INSIDE, ())
    wanted = 8 * US + (14 - 0) * 3 * US * 4 + 6 * 4 * US + 2 * 31 / 32 * 1e9 / (320 * GB)
    assert time("all-reduce", 32, 1e9, "ring", "wide", mixed) == pytest.approx(wanted, rel=1e-5)
    assert {row.protocol for row in evaluate(mixed, "all-reduce", 32, 1e9, "ring", protocol="all")} == {
        "quick",
        "wide",
    }


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
@pytest.mark.parametrize("ranks", [1, 32])
def test_none_is_the_plain_line(collective, ranks):
    """With or without tables, `none` is what a cluster without tables says."""
    for size in (0.0, 1e7):
        plain = evaluate(PLAIN, collective, ranks, size)
        assert evaluate(CLUSTER, collective, ranks, size, protocol="none") == plain
        assert {row.protocol for row in plain} == {"none"}
        assert evaluate(PLAIN, collective, ranks, size, protocol="none") == plain


@pytest.mark.parametrize("collective", sorted(ALGORITHMS))
@pytest.mark.parametrize("ranks", [1, 12, 32])
def test_auto_is_the_fastest_of_all_pairs(collective, ranks):
    @jax.jit
    def named_times(size):
        return {
            pair: cost(CLUSTER, collective, ranks, size, pair[0], protocol=pair[1]).time for pair in named
        }

    for size in (0.0,) if collective == "barrier" else (8.0, 1e9):
        every = evaluate(CLUSTER, collective, ranks, size, protocol="all")
        times = [row.time for row in every]
        assert times == sorted(times)
        pairs = [(row.algorithm, row.protocol) for row in every]
        assert len(pairs) == len(set(pairs))
        best = evaluate(CLUSTER, collective, ranks, size)
        assert [row.algorithm for row in best] == list(dict.fromkeys(row.algorithm for row in every))
        assert best[0] == every[0]
        assert select(CLUSTER, collective, ranks, size) == every[0].algorithm
        assert float(cost(CLUSTER, collective, ranks, size).time) == pytest.approx(times[0], rel=1e-6)
        # One compilation of each pair by its name serves both sizes; the tiers of the hierarchical one are chosen.
        named = sorted(pair for pair in pairs if pair[0] != "hierarchical")
        found = named_times(size)
        for row in every:
            if row.algorithm != "hierarchical":
                assert float(found[row.algorithm, row.protocol]) == pytest.approx(row.time, rel=1e-6)
            elif "+" not in row.protocol:
                again = time(collective, ranks, size, row.algorithm, row.protocol)
                assert again == pytest.approx(row.time, rel=1e-6)


def test_small_messages_take_the_quick_protocol_and_large_ones_the_wide_one():
    fastest = [evaluate(CLUSTER, "all-reduce", 32, size, "tree")[0].protocol for size in (8.0, 1e9)]
    assert fastest == ["quick", "wide"]
    rows = evaluate(CLUSTER, "all-reduce", 128, 3e6, "hierarchical", protocol="auto")
    assert set(rows[0].protocol.split("+")) <= {"quick", "wide", "none"}


def test_one_compilation_serves_every_size_and_number():
    """What is chosen differs with the size; what is compiled does not."""
    price._cached._clear_cache()  # so that other tests' compilations do not hide one
    chosen = set()
    rng = np.random.default_rng(3)
    for size in np.geomspace(8.0, 1e10, 64):
        scaled = jax.tree.map(lambda x: x * rng.uniform(0.9, 1.0), CLUSTER)
        (row,) = evaluate(scaled, "all-reduce", 128, float(size), "auto")
        chosen.add((row.algorithm, row.protocol))
    assert len(chosen) >= 2
    assert price._cached._cache_size() == 1


def test_chosen_stages_are_traceable_and_differentiable():
    found = stages(CLUSTER, "all-reduce", 128, 1e9, "ring", protocol="wide")

    @eqx.filter_jit
    def total(cluster, size):
        return sum(each.cost.time for each in phases_of(cluster, found, size))

    gradient = eqx.filter_grad(total)(CLUSTER, jnp.asarray(1e9))
    ring = gradient.tiers[1].protocols[1].ring
    # 24 hops between nodes, all stretched by the plateau.
    assert float(ring.hop_latency) == pytest.approx(24 * 1.4, rel=1e-5)
    slope = float(gradient.tiers[0].protocols[1].ring.efficiency)
    assert slope == pytest.approx(-2 * 127 / 128 * 1e9 / (400 * GB) / 0.8**2, rel=1e-5)


def test_the_shipped_cluster_counts_as_nccl_does():
    # 16 GPUs in two nodes, by hand from NCCL 2.30.7: 14 us + 28 hops inside, 2 outside, of 1.9 and 4 us; 0.92 of what
    # 8 x 48 and 370.8 GB/s allow.
    superpod = build_cluster(load_cluster("dgx-h100-superpod"))
    size = 1e9
    wanted = 14 * US + (28 * 1.9 + 2 * 4) * US + 15 / 8 * size / (0.92 * 370.8 * GB)
    assert time("all-reduce", 16, size, "ring", "LL128", superpod) == pytest.approx(wanted, rel=1e-3)
    wanted = (8.4 + 28 * 3.4 + 2 * 14) * 1.4 * US + 15 / 8 * size / (370.8 * GB)
    assert time("all-reduce", 16, size, "ring", "Simple", superpod) == pytest.approx(wanted, rel=1e-3)


def test_a_wrong_count_would_be_seen():
    """The negative control: one hop or one percent of bandwidth more is no longer what the tests above accept."""
    size = 1e6
    exact = time("all-reduce", 8, size, "ring", "quick")
    wrong = [
        7 * US + 15 * 0.6 * US + 14 / 8 * size / (160 * GB),
        7 * US + 14 * 0.6 * US + 14 / 8 * size / (162 * GB),
    ]
    assert all(abs(each / exact - 1) > 1e-3 for each in wrong)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (dict(protocol="quik"), "unknown protocol `quik`; did you mean `quick`?"),
        (
            dict(algorithm="in-network", protocol="quick"),
            "in-network all-reduce: expected a protocol that serves in-network algorithms on every tier of the "
            "group; got `quick`, and `wide` would do",
        ),
    ],
)
def test_refusals(ask, message):
    for call in (evaluate, phases, envelope):
        with pytest.raises(InputError) as caught:
            call(CLUSTER, "all-reduce", 128, 1e6, **ask)
        assert str(caught.value) == message


def test_a_cluster_without_tables_has_no_protocols_to_name():
    with pytest.raises(InputError, match="expected `auto` or `none`, since no link of c has protocols"):
        cost(PLAIN, "all-reduce", 8, 1e6, protocol="quick")


def test_a_choice_needs_numbers():
    with pytest.raises(CollectiveError, match="expected numbers to choose an algorithm by"):
        jax.jit(lambda size: cost(CLUSTER, "all-reduce", 8, size, "ring").time)(1e6)
    named = jax.jit(lambda size: cost(CLUSTER, "all-reduce", 8, size, "ring", protocol="quick").time)
    assert float(named(1e6)) == pytest.approx(time("all-reduce", 8, 1e6, "ring", "quick"), rel=1e-6)


def test_a_larger_group_or_message_never_takes_less():
    sizes = np.geomspace(8, 1e10, 40)
    for protocol, algorithm in itertools.product(("quick", "wide"), ("ring", "halving-doubling")):
        curves = [
            np.asarray(envelope(CLUSTER, "all-reduce", ranks, sizes, algorithm, protocol=protocol))
            for ranks in (8, 16, 32, 64, 128)
        ]
        assert np.all(np.diff(curves, axis=1) >= -1e-12)
        assert np.all(np.diff(curves, axis=0)[:, :20] > 0)
