"""Trees of switches with thin uplinks, against counting what crosses them."""

import pytest

from mc.collectives import cost, evaluate
from mc.collectives.oversubscribed import tree_dilution
from mc.fabric import Cluster, Level, Link, Tier, Tree

TREE = Tree((Level(8, 4.0), Level(4, 2.0), Level(2)))
SIZE = 1e9


def hall(shape, *, radix=None, oversubscription=1.0) -> Cluster:
    link = Link(5e-6, 50e9 / oversubscription)
    return Cluster("hall", (Tier("hall", link, 64, shape=shape, reduction_radix=radix),))


def seconds(cluster: Cluster, collective: str, name: str, ranks: int = 64) -> float:
    return float(cost(cluster, collective, ranks, SIZE, name).bandwidth_time)


@pytest.mark.parametrize("units", [5, 8, 9, 16, 32, 33, 64])
@pytest.mark.parametrize("ranks_per_unit", [1, 2])
def test_all_to_all_by_counting_what_crosses(units, ranks_per_unit):
    """The busiest switch of each level sends up what its ranks have for others, over O times less."""
    n = units * ranks_per_unit
    own = (n - 1) / n
    worst = own
    for below, factor in ((8, 4.0), (32, 8.0)):
        for switch in range(0, units, below):
            inside = [rank for rank in range(n) if switch <= rank // ranks_per_unit < switch + below]
            up = sum(1 / n for one in inside for other in range(n) if other not in inside)
            worst = max(worst, up / (below * ranks_per_unit) * factor)
    found = tree_dilution("direct", "all-to-all", TREE, units, ranks_per_unit)
    # Not-full switches have the uplinks of full ones, so they are never the busiest.
    assert found * own == pytest.approx(worst)


def test_a_ring_crosses_each_uplink_once():
    full = hall(None)
    for collective in ("all-reduce", "reduce-scatter", "broadcast"):
        assert seconds(hall(TREE), collective, "ring") == seconds(full, collective, "ring")
    thin = Tree((Level(2, 6.0), Level(32)))
    assert seconds(hall(thin), "all-reduce", "ring") == pytest.approx(3 * seconds(full, "all-reduce", "ring"))


def test_oversubscription_is_the_short_form():
    # What crosses the top is divided by all that is thin below it: 4 x 2.
    for name in ("recursive-doubling", "tree", "halving-doubling"):
        short = seconds(hall(None, oversubscription=8.0), "all-reduce", name)
        assert seconds(hall(TREE), "all-reduce", name) == pytest.approx(short)
    # Below the lowest switch nothing is.
    for row in evaluate(hall(TREE), "all-reduce", 8, SIZE):
        plain = cost(hall(None), "all-reduce", 8, SIZE, row.algorithm)
        assert row.time == pytest.approx(float(plain.time))


def test_switches_that_reduce_send_one_stream_up():
    plain = seconds(hall(None, radix=8), "all-reduce", "in-network")
    assert seconds(hall(TREE, radix=8), "all-reduce", "in-network") == plain
    thin = Tree((Level(2, 6.0), Level(32)))
    assert seconds(hall(thin, radix=8), "all-reduce", "in-network") == pytest.approx(3 * plain)


@pytest.mark.parametrize(("inside", "nodes"), [(8, 2), (4, 4), (1, 8)])
def test_all_at_once_sends_through_a_card_what_leaves_the_node(inside, nodes):
    # NVLink is fast, so the card decides; by counting the blocks of rank 0 that leave its node.
    fast, slow = Link(1e-6, 450e9), Link(5e-6, 50e9)
    pair = Cluster("pair", (Tier("node", fast, inside), Tier("network", slow, nodes)))
    n = inside * nodes
    leaves = sum(1 for other in range(n) if other // inside)
    assert seconds(pair, "all-to-all", "direct", n) == pytest.approx(leaves / n * SIZE / 50e9)
    # In rounds somebody's block leaves in each of them.
    assert seconds(pair, "all-to-all", "pairwise", n) == pytest.approx((n - 1) / n * SIZE / 50e9)
