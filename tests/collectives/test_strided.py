"""Collectives among ranks that are a stride apart: they see the tiers outside of the stride, at one rank's bandwidth."""

import jax
import pytest

from mc.collectives import CollectiveError, cost, evaluate, phases, select
from mc.collectives.oversubscribed import tree_dilution
from mc.fabric import Cluster, FullyConnected, Level, Link, Tier, Torus, Tree

NODE, UNIT, POD = (
    Tier("node", Link(1e-6, 4e11), 8),
    Tier("unit", Link(2e-6, 5e10), 4),
    Tier("pod", Link(5e-6, 2e10), 4),
)
WHOLE = Cluster("whole", (NODE, UNIT, POD))


@pytest.fixture(autouse=True)
def plainly():
    """Each group is priced once, so compiling would take longer."""
    with jax.disable_jit(), jax.enable_x64(True):
        yield


def times(cluster, collective, ranks, size):
    return {row.algorithm: row.time for row in evaluate(cluster, collective, ranks, size)}


@pytest.mark.parametrize(
    "collective", ["all-gather", "reduce-scatter", "all-to-all", "send-recv", "broadcast"]
)
@pytest.mark.parametrize(
    ("axes", "tiers", "ranks"),
    [
        # One rank per node: the tiers outside alone.
        (((16, 8),), (UNIT, POD), 16),
        (((4, 8),), (UNIT,), 4),
        (((4, 32),), (POD,), 4),
        # Two ranks in each node: a node of two.
        (((8, 4),), (Tier("node", NODE.link, 2), UNIT), 8),
        (((2, 1), (4, 8)), (Tier("node", NODE.link, 2), UNIT), 8),
        # Two units of the pod, with one rank in each node of theirs.
        (((4, 8), (2, 64)), (UNIT, Tier("pod", POD.link, 2)), 8),
    ],
)
def test_as_on_a_cluster_without_what_it_skips(collective, axes, tiers, ranks):
    size = 3e7
    alone = Cluster("alone", tiers)
    assert times(WHOLE, collective, axes, size) == pytest.approx(
        times(alone, collective, ranks, size), rel=1e-12
    )


def test_all_reduce_of_a_rail():
    size, axes, rail = 1e8, ((16, 8),), Cluster("rail", (UNIT, POD))
    for algorithm in ("ring", "hierarchical"):
        found = float(cost(WHOLE, "all-reduce", axes, size, algorithm).time)
        assert found == pytest.approx(float(cost(rail, "all-reduce", 16, size, algorithm).time), rel=1e-12)
    ring = float(cost(WHOLE, "all-reduce", axes, size, "ring").time)
    # 2(n - 1)/n of the buffer over the slowest link, 2(n - 1) latencies of the outermost.
    assert ring == pytest.approx(30 * 5e-6 + 2 * 15 / 16 * size / 2e10)


def test_phases_are_of_the_tiers_outside():
    found = phases(WHOLE, "all-reduce", ((16, 8),), 1e8, "hierarchical")
    assert [phase.tier_name for phase in found] == ["unit", "pod", "unit"]
    assert [phase.units for phase in found] == [4, 4, 4]


def test_six_ranks_in_units_of_eight_pay_for_those_that_straddle():
    whole = Cluster("two tiers", (NODE, UNIT))
    assert float(cost(whole, "send-recv", ((6, 1),), 1e8).time) == pytest.approx(2e-6 + 1e8 / 5e10)
    assert float(cost(whole, "send-recv", 6, 1e8).time) == pytest.approx(1e-6 + 1e8 / 4e11)


def test_lines_of_a_torus():
    """A line in the second direction is a ring of its own, and has the links of that direction only."""
    grid = Torus((4, 4, 2))
    whole = Cluster("grid", (Tier("grid", Link(1e-6, 6e10), 32, shape=grid),))
    line = Cluster("line", (Tier("line", Link(1e-6, 6e10), 4, shape=Torus((4,), links=grid.links)),))
    plane = Cluster("plane", (Tier("plane", Link(1e-6, 6e10), 8, shape=Torus((4, 2), links=grid.links)),))
    for collective in ("all-gather", "all-to-all"):
        assert times(whole, collective, ((4, 4),), 1e8) == pytest.approx(times(line, collective, 4, 1e8))
        assert times(whole, collective, ((8, 4),), 1e8) == pytest.approx(times(plane, collective, 8, 1e8))
    with pytest.raises(
        CollectiveError, match="expected whole lines and planes of the torus; 2 ranks take units"
    ):
        cost(whole, "all-gather", ((2, 2),), 1e8)


def test_a_mesh_has_a_link_between_any_two():
    mesh = Cluster("mesh", (Tier("mesh", Link(1e-6, 7e10), 8, shape=FullyConnected()),))
    assert times(mesh, "all-gather", ((4, 2),), 1e8) == pytest.approx(times(mesh, "all-gather", 4, 1e8))


def test_groups_between_each_other_share_the_uplinks_of_a_tree():
    """Under a leaf of four units with half the bandwidth upwards: one stream of a group, times four groups."""
    tree = Tree((Level(4, 2.0), Level(8)))
    assert tree_dilution("ring", "all-gather", tree, 8, 1) == 1.0
    for step, members in ((1, 4), (2, 2), (4, 1), (8, 1)):
        streams = 4 / members
        wanted = max(1.0, streams / (4 / 2.0))
        assert tree_dilution("ring", "all-gather", tree, 8, 1, ((8, step),)) == wanted
        # Of a direct all-to-all, what is not under the same switch goes up.
        assert tree_dilution("direct", "all-to-all", tree, 8, 1, ((8, step),)) == max(
            1.0, 2.0 * (8 - members) / 7
        )


def test_the_choice_depends_on_where_ranks_are():
    assert select(WHOLE, "all-gather", ((64, 1),), 1e9) == "hierarchical"
    assert select(WHOLE, "all-gather", ((4, 8),), 1e9) != "hierarchical"
