"""Collectives on tori, against counting what each link carries, a linear program, bounds and published figures."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from mc.collectives import CollectiveError, cost, evaluate, phases
from mc.collectives.torus import all_to_all_load, busiest_link, torus_algorithms
from mc.config import load_cluster
from mc.fabric import Cluster, Link, Tier, Torus, build_cluster
from mc.schedules import build, counts
from tests.fabric.grids import loads, neighbours

ALPHA, WIDTH = 1e-6, 200e9
GRIDS = [
    Torus((5,)),
    Torus((4,), (False,)),
    Torus((2,)),
    Torus((2,), (True,)),
    Torus((4, 4)),
    Torus((2, 8)),
    Torus((2, 8), (True, False)),
    Torus((4, 8), (False, True)),
    Torus((3, 5), (False, False)),
    Torus((2, 2, 1), (False, False, False)),
    Torus((4, 4, 4)),
    Torus((2, 3, 4)),
    Torus((2, 2, 7), (True, True, False)),
    Torus((3, 1, 2), (True, False, True)),
]
every_grid = pytest.mark.parametrize("torus", GRIDS, ids=str)


def slice_of(torus: Torus, latency: float = ALPHA, bandwidth: float = WIDTH) -> Cluster:
    return Cluster("slice", (Tier("slice", Link(latency, bandwidth), torus.size, shape=torus),))


def counted(torus: Torus, collective: str, name: str):
    return torus_algorithms(collective, torus)[name]


@every_grid
def test_multi_ring_is_the_best_mixture_of_orders(torus):
    # One unknown per order of the dimensions, its part of the buffer, and the load of the busiest link, which
    # is to be least. A dimension that an order reaches after others gets what they left.
    dims = [(extent, rings) for extent, rings in zip(torus.dims, torus.rings, strict=True) if rings]
    orders = list(itertools.permutations(range(len(dims))))
    load = np.zeros((len(dims), len(orders)))
    for column, order in enumerate(orders):
        left = 1.0
        for axis in order:
            extent, rings = dims[axis]
            load[axis, column] = left * (extent - 1) / extent / rings
            left /= extent
    found = linprog(
        [0.0] * len(orders) + [1.0],
        A_ub=np.hstack([load, -np.ones((len(dims), 1))]),
        b_ub=np.zeros(len(dims)),
        A_eq=[[1.0] * len(orders) + [0.0]],
        b_eq=[1.0],
    )
    assert found.success
    assert busiest_link(torus) == pytest.approx(found.fun, rel=1e-9)


@every_grid
def test_no_algorithm_beats_the_bounds(torus):
    # The corner must take in (N−1)/N·B through the links it has, in a reduce-scatter and in an all-gather
    # (Patarasuk & Yuan 2009); a word crosses the diameter.
    n, corner = torus.size, len(neighbours(torus, parallel=True)[0])
    least = (n - 1) / n / corner * torus.links
    for collective, times in (("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)):
        for name, each in torus_algorithms(collective, torus).items():
            assert each.carried >= times * least * (1 - 1e-12), name
            assert each.rounds + each.hops >= torus.diameter
    for collective in ("broadcast", "reduce"):
        for name, each in torus_algorithms(collective, torus).items():
            assert each.carried >= least * (1 - 1e-12), name
            assert each.rounds + each.hops >= torus.diameter


def test_grids_of_equal_rings_reach_the_bound():
    for dims in ((5,), (4, 4), (16, 16), (4, 4, 4), (8, 8, 16), (16, 20, 28), (3, 7), (4, 12)):
        torus = Torus(dims)
        n = torus.size
        assert busiest_link(torus) * torus.links == pytest.approx((n - 1) / n)
    # Not where one dimension is short and has most of the links.
    lopsided = Torus((2, 8), (True, False))
    assert busiest_link(lopsided) == pytest.approx(7 / 16)
    assert busiest_link(lopsided) > 15 / 16 / 3


@pytest.mark.parametrize("dims", [(5,), (4, 4), (3, 3, 3)])
@pytest.mark.parametrize("collective", ["all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"])
def test_the_messages_on_a_cube_cost_what_the_formula_says(dims, collective):
    torus = Torus(dims)
    schedule = build(collective, "multi-ring", torus.size, units=dims)
    found, wanted = counts(schedule, own_ports=True), counted(torus, collective, "multi-ring")
    assert found.sent.mean() == pytest.approx(wanted.sent)
    assert found.carried * torus.links == pytest.approx(wanted.carried)
    assert found.rounds == wanted.rounds
    # Rings go to neighbours only; a scatter or gather goes straight.
    near = torus.distance(schedule.source, schedule.target) == 1
    rooted = collective in ("broadcast", "reduce")
    assert np.all(near | ((schedule.source == 0) | (schedule.target == 0) if rooted else False))


def test_rounds_of_the_multi_ring():
    # 15 steps in each of two dimensions; of a line without a way round, two hops each.
    assert counted(Torus((16, 16)), "all-gather", "multi-ring").rounds == 30
    assert counted(Torus((16, 16)), "all-reduce", "multi-ring").rounds == 60
    line = counted(Torus((8,), (False,)), "all-gather", "multi-ring")
    assert (line.rounds, line.hops) == (7, 7)
    pair = counted(Torus((2, 2, 1), (False, False, False)), "all-gather", "multi-ring")
    assert (pair.rounds, pair.hops) == (2, 0)


@pytest.mark.parametrize("extent", [2, 3, 4, 5, 8, 9])
def test_the_ring_of_a_line_out_and_back(extent):
    # 0, 2, 4, …, then back by the odd ones: every link once in each direction, two hops at most.
    torus = Torus((extent,), (False,))
    order = [*range(0, extent, 2), *reversed(range(1, extent, 2))]
    carried = loads(torus, order, [*order[1:], order[0]])
    assert carried.max() == 1
    assert torus.distance(order, [*order[1:], order[0]]).max() == (2 if extent > 2 else 1)


@every_grid
def test_all_to_all_by_counting(torus):
    n = torus.size
    source, target = np.meshgrid(np.arange(n), np.arange(n))
    carried = loads(torus, source, target, 1 / n)
    assert all_to_all_load(torus) == pytest.approx(carried.max())
    found = counted(torus, "all-to-all", "direct")
    assert found.rounds + found.hops == torus.distance(source, target).max()
    assert found.sent == pytest.approx((n - 1) / n)


@pytest.mark.parametrize(
    ("torus", "cut"),
    # Links one way across the middle of the longest dimension.
    [(Torus((16, 16)), 2 * 16), (Torus((4, 4, 8)), 2 * 16), (Torus((8, 4), (False, True)), 4)],
    ids=str,
)
def test_all_to_all_is_bounded_by_the_bisection(torus, cut):
    # Half of the ranks send half of their buffer to the other half.
    across = torus.size / 2 / 2 / cut
    assert all_to_all_load(torus) == pytest.approx(across)


@every_grid
def test_send_recv_by_counting(torus):
    ranks = np.arange(torus.size)
    following = (ranks + 1) % torus.size
    found = counted(torus, "send-recv", "direct")
    assert loads(torus, ranks, following).max() <= found.carried / torus.links + 1e-12
    assert found.rounds + found.hops == torus.distance(ranks, following).max()


@pytest.mark.parametrize(
    "torus", [torus for torus in GRIDS if all(e & (e - 1) == 0 for e in torus.dims)], ids=str
)
def test_recursive_doubling_by_counting(torus):
    found = counted(torus, "all-reduce", "recursive-doubling")
    ranks, load, hops = np.arange(torus.size), 0.0, 0
    for step in range(torus.size.bit_length() - 1):
        partner = ranks ^ (1 << step)
        load += loads(torus, ranks, partner).max()
        hops += torus.distance(ranks, partner).max()
    assert found.carried / torus.links == pytest.approx(load)
    assert found.rounds + found.hops == hops


@every_grid
def test_dissemination_by_counting(torus):
    found = counted(torus, "barrier", "dissemination")
    ranks, hops, rounds, stride = np.arange(torus.size), 0, 0, 1
    for extent in torus.dims:
        for step in range((extent - 1).bit_length()):
            place = ranks // stride % extent
            partner = ranks + ((place + (1 << step)) % extent - place) * stride
            hops += torus.distance(ranks, partner).max()
            rounds += 1
        stride *= extent
    assert (found.rounds, found.rounds + found.hops) == (rounds, hops)


@every_grid
def test_gather_is_the_best_flow_into_the_root(torus):
    # Every unit but the root gives 1/N, links carry no more than the busiest: a linear program.
    n = torus.size
    links = [(unit, other) for unit, near in enumerate(neighbours(torus, parallel=True)) for other in near]
    leaving = np.zeros((n, len(links) + 1))
    for column, (unit, other) in enumerate(links):
        leaving[unit, column] += 1
        leaving[other, column] -= 1
    below = np.hstack([np.eye(len(links)), -np.ones((len(links), 1))])
    least = linprog(
        [0.0] * len(links) + [1.0],
        A_ub=below,
        b_ub=np.zeros(len(links)),
        A_eq=leaving[1:],
        b_eq=np.full(n - 1, 1 / n),
    )
    assert least.success
    found = counted(torus, "gather", "direct")
    assert found.carried / torus.links == pytest.approx(least.fun, rel=1e-7)
    assert found.rounds + found.hops == torus.distance(np.arange(n), 0).max()


def test_seconds_on_a_slice_by_hand():
    # 16 x 16, four links of 50 GB/s each way: 60 hops and 2·255/256 of the buffer over all of them.
    size = 64e6
    whole = slice_of(Torus((16, 16)))
    found = float(cost(whole, "all-reduce", 256, size, "multi-ring").time)
    assert found == pytest.approx(60e-6 + 2 * 255 / 256 * size / 200e9, rel=1e-6)
    # One ring uses one of the four links.
    found = float(cost(whole, "all-reduce", 256, size, "ring").time)
    assert found == pytest.approx(510e-6 + 2 * 255 / 256 * size / 50e9, rel=1e-6)
    # All-to-all: a quarter of the length of the longest dimension in hops of bytes, 16/8·B on a link.
    found = float(cost(whole, "all-to-all", 256, size, "direct").time)
    assert found == pytest.approx(16e-6 + 2 * size / 50e9, rel=1e-6)
    # Half of it: a line of 16 wraps, one of 8 does not; three rings, of which the way back takes two hops.
    half = slice_of(Torus((8, 16), (False, True)))
    found = float(cost(half, "all-gather", 128, size, "multi-ring").time)
    assert found == pytest.approx((15 + 2 * 7) * 1e-6 + 127 / 128 * size / 150e9, rel=1e-6)


# Google Cloud documentation: all-reduce bandwidth and bisection bandwidth of a pod, bytes/s. That of v4 is some
# 10 % below what six links of 50 GB/s would give (1.1 PB/s printed for 4,096 chips).
PODS = [
    ("tpu-v5e-16x16", (16, 16), 51.2e12, 1.6e12, 1e-6),
    ("tpu-v6e-16x16", (16, 16), 102.4e12, 3.2e12, 1e-6),
    ("tpu-v4-4x4x4", (16, 16, 16), 1.1e15, 24e12, 0.12),
]


@pytest.mark.parametrize(("name", "dims", "all_reduce", "bisection", "within"), PODS)
def test_pods_as_published(name, dims, all_reduce, bisection, within):
    shape = f"{{kind: torus, dims: {'x'.join(map(str, dims))}}}"
    n = math.prod(dims)
    pod = build_cluster(load_cluster(name, [f"tiers.0.fan_out={n}", f"tiers.0.shape={shape}"]))
    with jax.enable_x64(True):
        (row,) = evaluate(pod, "all-reduce", n, 1e15, "multi-ring")
        assert row.bus_bandwidth is not None
        assert row.bus_bandwidth * n == pytest.approx(all_reduce, rel=max(within, 1e-3))
        # An all-to-all has half of the ranks send half of their buffers across the bisection.
        (row,) = evaluate(pod, "all-to-all", n, 1e15, "direct")
        assert n / 4 * 1e15 / row.time == pytest.approx(bisection, rel=max(within, 1e-3))


def test_all_to_all_takes_a_quarter_of_the_all_gather_of_the_same_array():
    # Austin et al. 2025, "How to Scale Your Model", on a ring with links in both directions: of the same array,
    # whose size is that of all buffers of the all-to-all together.
    with jax.enable_x64(True):
        ring = slice_of(Torus((64,)), latency=0.0)
        gather = float(cost(ring, "all-gather", 64, 1e12).time)
        shuffle = float(cost(ring, "all-to-all", 64, 1e12 / 64).time)
    assert shuffle / gather == pytest.approx(1 / 4, rel=0.02)


def test_parts_of_a_torus():
    whole = slice_of(Torus((4, 4, 2)))
    # One line, which is whole and wraps; two of four lines, which do not; two planes.
    for ranks, lanes in ((4, 2), (8, 2 + 1), (16, 2 + 2), (32, 2 + 2 + 1)):
        found = cost(whole, "all-gather", ranks, 1e9, "multi-ring")
        wanted = (ranks - 1) / ranks * 1e9 / (WIDTH * lanes / 6)
        assert float(found.bandwidth_time) == pytest.approx(wanted, rel=1e-6)
    for ranks in (5, 12, 31):
        if Torus((4, 4, 2)).box(ranks) is None:
            with pytest.raises(CollectiveError, match="expected whole lines and planes of the 4x4x2 torus"):
                evaluate(whole, "all-gather", ranks, 1e9)


def test_what_is_offered():
    whole = slice_of(Torus((4, 4)))

    def names(collective, ranks=16):
        return {row.algorithm for row in evaluate(whole, collective, ranks, 1e6)}

    assert {"ring", "multi-ring", "recursive-doubling"} <= names("all-reduce")
    assert "recursive-doubling" not in names("all-reduce", 3)
    for collective, one in (
        ("broadcast", "multi-ring"),
        ("reduce", "ring"),
        ("all-to-all", "direct"),
        ("send-recv", "direct"),
        ("barrier", "dissemination"),
    ):
        assert one in names(collective)
    # Trees and pairs across the torus are not carried at their cost.
    assert not names("all-reduce") & {"tree", "binomial", "k-ary", "halving-doubling", "in-network"}
    with pytest.raises(CollectiveError) as caught:
        evaluate(whole, "all-reduce", 16, 1e6, "tree")
    assert str(caught.value).startswith(
        "tree all-reduce: expected switches between all units; `slice` is a torus. There, one of ring, "
    )
    switched = Cluster("s", (Tier("node", Link(1e-6, 1e9), 8),))
    with pytest.raises(
        CollectiveError, match="multi-ring all-reduce: expected a group inside a torus; `node` is"
    ):
        evaluate(switched, "all-reduce", 8, 1e6, "multi-ring")


def test_slices_joined_by_switches():
    # Two tiers: multi-rings inside, the fastest across with what each chip then holds.
    whole = Cluster(
        "multislice",
        (
            Tier("slice", Link(ALPHA, WIDTH), 16, shape=Torus((4, 4))),
            Tier("network", Link(10e-6, 3e9), 4),
        ),
    )
    size = 1e9
    found = phases(whole, "all-reduce", 64, size, "hierarchical")
    assert [(each.collective, each.algorithm) for each in found] == [
        ("reduce-scatter", "multi-ring"),
        ("all-reduce", "halving-doubling"),
        ("all-gather", "multi-ring"),
    ]
    inside = 6e-6 + 15 / 16 * size / 200e9
    across = 4 * 10e-6 + 2 * 3 / 4 * size / 16 / 3e9
    total = sum(float(each.cost.time) for each in found)
    assert total == pytest.approx(2 * inside + across, rel=1e-6)
    # Flat, one ring through everything; it pays the network's latency, and one link of the torus.
    (ring,) = phases(whole, "all-reduce", 64, size, "ring")
    assert float(ring.cost.time) == pytest.approx(126 * 10e-6 + 126 / 64 * size / 3e9, rel=1e-6)
    slow = eqx.tree_at(lambda c: c.tiers[0].link.bandwidth, whole, jnp.asarray(4e9))
    (ring,) = phases(slow, "all-reduce", 64, size, "ring")
    assert float(ring.cost.bandwidth_time) == pytest.approx(126 / 64 * size / 1e9, rel=1e-6)


def test_gradients_go_through_the_links_of_a_torus():
    whole = slice_of(Torus((4, 4)))

    def time(cluster):
        return cost(cluster, "all-reduce", 16, 1e8, "multi-ring").time

    gradient = jax.grad(time)(whole)
    assert float(gradient.tiers[0].link.latency) == pytest.approx(12.0)
    assert float(gradient.tiers[0].link.bandwidth) == pytest.approx(-2 * 15 / 16 * 1e8 / WIDTH**2, rel=1e-5)
