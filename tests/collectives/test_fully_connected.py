"""Collectives where each pair has its own link: by hand, against counting messages on links, and against bounds."""

import collections
import itertools

import pytest

from mc.collectives import CollectiveError, cost, evaluate, phases
from mc.collectives.fully_connected import mesh_algorithms, mesh_dilution
from mc.config import load_cluster
from mc.fabric import Cluster, FullyConnected, Link, Tier, build_cluster

SIZE, ALPHA, WIDTH = 64e6, 1.2e-6, 448e9
NODE = Cluster("node", (Tier("node", Link(ALPHA, WIDTH), 8, shape=FullyConnected()),))
ONE_LINK = WIDTH / 7


def seconds(collective: str, name: str, ranks: int = 8) -> float:
    return float(cost(NODE, collective, ranks, SIZE, name).time)


@pytest.mark.parametrize(
    ("collective", "name", "wanted"),
    [
        # B/8 on each of seven links, all at once.
        ("reduce-scatter", "direct", ALPHA + SIZE / 8 / ONE_LINK),
        ("all-gather", "direct", ALPHA + SIZE / 8 / ONE_LINK),
        ("all-to-all", "direct", ALPHA + SIZE / 8 / ONE_LINK),
        ("all-reduce", "direct", 2 * (ALPHA + SIZE / 8 / ONE_LINK)),
        ("broadcast", "direct", 2 * (ALPHA + SIZE / 8 / ONE_LINK)),
        ("reduce", "direct", 2 * (ALPHA + SIZE / 8 / ONE_LINK)),
        # All of it on each link.
        ("all-reduce", "one-shot", ALPHA + SIZE / ONE_LINK),
        # Seven rings with a seventh of the buffer each.
        ("all-reduce", "ring", 14 * ALPHA + 14 / 8 * SIZE / 7 / ONE_LINK),
        ("broadcast", "ring", 7 * ALPHA + SIZE / 7 / ONE_LINK),
        # One partner, one link.
        ("send-recv", "direct", ALPHA + SIZE / ONE_LINK),
        ("all-reduce", "recursive-doubling", 3 * (ALPHA + SIZE / ONE_LINK)),
        ("all-reduce", "halving-doubling", 6 * ALPHA + 2 * 7 / 8 * SIZE / ONE_LINK),
        ("all-to-all", "pairwise", 7 * (ALPHA + SIZE / 8 / ONE_LINK)),
        ("broadcast", "binomial", 3 * (ALPHA + SIZE / ONE_LINK)),
    ],
)
def test_eight_by_hand(collective, name, wanted):
    assert seconds(collective, name) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("units", "fan_out"), [(2, 2), (3, 3), (8, 8), (4, 8), (5, 9)])
def test_direct_algorithms_by_counting_links(units, fan_out):
    """Lay the messages out, and look at the busiest link; a link is 1/(F−1) of a rank."""
    pairs = list(itertools.permutations(range(units), 2))
    part = 1 / units

    def busiest(*rounds: dict) -> float:
        return sum(max(each.values()) for each in rounds) * (fan_out - 1)

    def sent(*rounds: dict) -> float:
        return sum(sum(each.values()) for each in rounds) / units

    everyone = dict.fromkeys(pairs, part)
    from_root = {pair: part for pair in pairs if pair[0] == 0}
    to_root = {pair: part for pair in pairs if pair[1] == 0}
    # In the second round of a broadcast the root sends its own part, and needs none.
    spread = {pair: part for pair in pairs if pair[1] != 0}
    for collective, name, rounds in (
        ("reduce-scatter", "direct", [everyone]),
        ("all-gather", "direct", [everyone]),
        ("all-to-all", "direct", [everyone]),
        ("all-reduce", "direct", [everyone, everyone]),
        ("all-reduce", "one-shot", [dict.fromkeys(pairs, 1.0)]),
        ("broadcast", "direct", [from_root, spread]),
        ("reduce", "direct", [everyone, to_root]),
        ("gather", "direct", [to_root]),
        ("scatter", "direct", [from_root]),
    ):
        found = mesh_algorithms(collective, units, fan_out)[name]
        assert found.rounds == len(rounds), collective
        assert found.carried == pytest.approx(busiest(*rounds)), collective
        assert found.sent == pytest.approx(sent(*rounds)), collective


def test_rings_take_the_links_there_are():
    # Of eight, four ranks have three links each and two rings (both ways round); a ring of two is one link.
    assert mesh_dilution("ring", 4, 8) == 7 / 2
    assert mesh_dilution("ring", 2, 8) == 7
    assert seconds("all-reduce", "ring", 4) == pytest.approx(
        6 * ALPHA + 6 / 4 * SIZE / 2 / ONE_LINK, rel=1e-6
    )
    assert seconds("all-reduce", "ring", 2) == pytest.approx(2 * ALPHA + SIZE / ONE_LINK, rel=1e-6)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_bounds(ranks):
    # A rank has ranks − 1 links, and 2(n−1)/n·B must go through them (Patarasuk & Yuan 2009).
    least = 2 * (ranks - 1) / ranks * SIZE / ((ranks - 1) * ONE_LINK)
    rows = evaluate(NODE, "all-reduce", ranks, SIZE)
    for row in rows:
        assert row.time > least * (1 - 1e-6)
    (direct,) = [row for row in rows if row.algorithm == "direct"]
    assert direct.time == pytest.approx(least + 2 * ALPHA, rel=1e-6)
    assert evaluate(NODE, "all-reduce", 8, 8.0)[0].algorithm == "one-shot"


def test_the_shipped_node():
    # ROCm blog, "Understanding RCCL Bandwidth and xGMI Performance on AMD Instinct MI300X" (2025): 64 GB/s for
    # each link, 448 for seven in the ideal.
    node = build_cluster(load_cluster("mi300x-node"))
    (row,) = evaluate(node, "send-recv", 8, 1e12, "direct")
    assert row.bus_bandwidth == pytest.approx(64e9, rel=1e-3)
    (row,) = evaluate(node, "all-reduce", 8, 1e12, "ring")
    assert row.bus_bandwidth == pytest.approx(448e9, rel=1e-3)


def test_nodes_joined_by_a_network():
    whole = Cluster("hall", (*NODE.tiers, Tier("hall", Link(5e-6, 50e9), 4)))
    found = phases(whole, "all-reduce", 32, SIZE, "hierarchical")
    assert collections.Counter(each.algorithm for each in found)["direct"] == 2
    inside = ALPHA + SIZE / 8 / ONE_LINK
    across = 4 * 5e-6 + 2 * 3 / 4 * SIZE / 8 / 50e9
    assert sum(float(each.cost.time) for each in found) == pytest.approx(2 * inside + across, rel=1e-6)
    with pytest.raises(CollectiveError, match="expected a group inside a fully connected tier"):
        evaluate(whole, "all-reduce", 32, SIZE, "one-shot")
    # Flat, a message inside a node has one link only.
    slow = Cluster("slow", (Tier("node", Link(ALPHA, 7e9), 8, shape=FullyConnected()), whole.tiers[1]))
    (tree,) = phases(slow, "all-reduce", 32, SIZE, "recursive-doubling")
    assert float(tree.cost.bandwidth_time) == pytest.approx(5 * SIZE / 1e9, rel=1e-6)
