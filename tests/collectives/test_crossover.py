"""Where tree and ring meet."""

import jax
import numpy as np
import pytest

from mc.collectives import CollectiveError, Machine, algorithms, crossings, crossover_size, evaluate
from mc.fabric import Cluster, Link, Tier
from tests.collectives.test_protocols import CLUSTER

LINK = Link(latency=5e-6, bandwidth=5e10)


def times(n: int, sizes, names=("tree", "ring")) -> np.ndarray:
    machine = Machine(LINK.latency, LINK.bandwidth)
    one = [algorithms("all-reduce")[name] for name in names]
    return np.asarray([[float(each.cost(n, size, machine).time) for each in one] for size in sizes])


@pytest.mark.parametrize("n", [4, 5, 8, 16, 100, 1024, 2**14, 2**20])
def test_closed_form(n):
    # Equal times: 2(n−1)α + 2(n−1)/n·B/w = 2⌈log₂ n⌉α + 2·B/w.
    wanted = n * (n - 1 - (n - 1).bit_length()) * 5e-6 * 5e10
    assert float(crossover_size(n, LINK)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("n", [5, 16, 1024])
def test_tree_wins_small_and_ring_wins_large_with_one_crossing(n):
    crossing = float(crossover_size(n, LINK))
    sizes = crossing * np.geomspace(1e-4, 1e4, 40)
    tree, ring = times(n, sizes).T
    np.testing.assert_array_equal(tree < ring, sizes < crossing)
    at_crossing = times(n, [crossing])[0]
    assert at_crossing[0] == pytest.approx(at_crossing[1], rel=1e-6)


def test_it_grows_with_the_number_of_ranks():
    sizes = [float(crossover_size(n, LINK)) for n in range(3, 65)]
    assert sizes[0] == 0.0  # three ranks: as many rounds in the tree as in the ring
    assert np.all(np.diff(sizes) > 0)


def test_order_does_not_matter():
    assert float(crossover_size(64, LINK, "ring", "tree")) == float(crossover_size(64, LINK, "tree", "ring"))


@pytest.mark.parametrize(
    ("n", "first", "second"),
    [
        (1, "tree", "ring"),  # both cost nothing
        (2, "tree", "ring"),  # both are one exchange each way
        (16, "ring", "ring"),
        (16, "binomial", "tree"),  # as many rounds and more bytes: never better
        (16, "halving-doubling", "ring"),  # fewer rounds, no more bytes: always better
    ],
)
def test_without_a_crossing(n, first, second):
    size = float(crossover_size(n, LINK, first, second))
    assert np.isnan(size) or size == 0.0
    if n == 1 or n == 2 or first == second:
        assert np.isnan(size)


def test_derivatives():
    # B = n(n − 1 − ⌈log₂ n⌉)·α·w: linear in each.
    def size(latency, bandwidth):
        return crossover_size(64, Link(latency, bandwidth))

    by_latency, by_bandwidth = jax.jit(jax.grad(size, argnums=(0, 1)))(5e-6, 5e10)
    assert float(by_latency) == pytest.approx(64 * 57 * 5e10, rel=1e-6)
    assert float(by_bandwidth) == pytest.approx(64 * 57 * 5e-6, rel=1e-6)


def test_reduction_time_and_switches_count():
    # γ: tree B·γ, ring (n−1)/n·B·γ; so the difference per byte is 2/n/w + γ/n.
    gamma = 1e-11
    found = float(crossover_size(64, LINK, reduction_time_per_byte=gamma))
    assert found == pytest.approx(2 * 57 * 5e-6 / (2 / 64 / 5e10 + gamma / 64), rel=1e-6)
    # Switches with a slow hop: 4·h against 126·α, B/w against 126/64·B/w; the ring wins small.
    found = float(crossover_size(64, LINK, "in-network", "ring", hop_latency=1e-3, radix=8))
    assert found == pytest.approx((4e-3 - 126 * 5e-6) / ((126 / 64 - 1) / 5e10), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": "tre"}, "unknown algorithm `tre` for all-reduce; did you mean `tree`?"),
        ({"collective": "all-reduc"}, "unknown collective `all-reduc`; did you mean `all-reduce`?"),
        ({"ranks": 0}, "ranks: expected a whole number of at least 1; got 0"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(CollectiveError) as caught:
        crossover_size(**({"ranks": 8, "link": LINK} | arguments))
    assert str(caught.value) == message


def test_crossings_of_lines_are_the_closed_form():
    plain = Cluster("plain", (Tier("fabric", LINK, 64),))
    assert crossings(plain, 64) == pytest.approx([float(crossover_size(64, LINK))], rel=2e-3)
    assert crossings(plain, 64, "halving-doubling", "ring") == []
    assert crossings(plain, 64, "ring", "ring") == []


def test_crossings_of_envelopes_are_where_the_faster_one_changes():
    found = crossings(CLUSTER, 32)
    assert found
    for size in found:
        below, above = (
            {row.algorithm: row.time for row in evaluate(CLUSTER, "all-reduce", 32, size * factor)}
            for factor in (0.98, 1.02)
        )
        assert (below["tree"] < below["ring"]) != (above["tree"] < above["ring"])
