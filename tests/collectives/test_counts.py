"""The closed forms against executions: the result is right, and rounds and bytes are those that were counted."""

from collections.abc import Callable

import jax
import numpy as np
import pytest

from mc.collectives import ALGORITHMS, AbstractAlgorithm, Machine
from tests.collectives import execution as run
from tests.collectives.execution import Network

RANKS = (*range(1, 18), 32, 33)
RADIX = 3

EXECUTIONS: dict[tuple[str, str], Callable] = {
    ("all-reduce", "ring"): run.ring_all_reduce,
    ("all-reduce", "recursive-doubling"): run.recursive_doubling_all_reduce,
    ("all-reduce", "halving-doubling"): run.halving_doubling_all_reduce,
    ("all-reduce", "binomial"): run.kary_all_reduce,
    ("all-reduce", "k-ary"): lambda network, data: run.kary_all_reduce(network, data, RADIX),
    ("reduce", "binomial"): run.kary_reduce,
    ("reduce", "k-ary"): lambda network, data: run.kary_reduce(network, data, RADIX),
    ("broadcast", "binomial"): run.kary_broadcast,
    ("broadcast", "k-ary"): lambda network, data: run.kary_broadcast(network, data, RADIX),
    ("reduce-scatter", "ring"): run.ring_reduce_scatter,
    ("reduce-scatter", "recursive-halving"): run.recursive_halving_reduce_scatter,
    ("all-gather", "ring"): run.ring_all_gather,
    ("all-gather", "recursive-doubling"): run.recursive_doubling_all_gather,
    ("all-to-all", "pairwise"): run.pairwise_all_to_all,
    ("all-to-all", "bruck"): run.bruck_all_to_all,
    ("all-to-all", "direct"): run.direct_all_to_all,
    ("send-recv", "direct"): run.send_recv,
    ("barrier", "dissemination"): run.dissemination_barrier,
}
# Pipelined and in-network algorithms are limits of many small pieces: they have tests of their own below.
STREAMING = {
    ("all-reduce", "tree"),
    ("reduce", "ring"),
    ("broadcast", "ring"),
    *((collective, "in-network") for collective in ("all-reduce", "reduce", "broadcast", "barrier")),
}


def vectors(n: int, size: int) -> list[np.ndarray]:
    return [np.arange(size, dtype=np.int64) * 1000 + 7 * i * i + i for i in range(n)]


def expected(collective: str, data: list[np.ndarray]) -> list:
    """What each rank must hold at the end."""
    n = len(data)
    match collective:
        case "all-reduce":
            return [sum(data)] * n
        case "reduce":
            return [sum(data)]
        case "broadcast":
            return [data[0]] * n
        case "reduce-scatter":
            return np.split(np.asarray(sum(data)), n)
        case "all-gather":
            return [np.concatenate(data)] * n
        case "all-to-all":
            return [np.concatenate([np.split(each, n)[i] for each in data]) for i in range(n)]
        case "send-recv":
            return [data[(i - 1) % n] for i in range(n)]
    return [set(range(n))] * n


@jax.jit
def _units(algorithm: AbstractAlgorithm, ranks, size):
    # One second per round, per byte carried and per byte combined; in seconds, the cost is the counts.
    machine = Machine(latency=1.0, bandwidth=1.0, reduction_time_per_byte=1.0, hop_latency=1.0, radix=RADIX)
    return algorithm.cost(ranks, size, machine)


def closed_form(collective: str, name: str, n: int, size: int) -> dict[str, float]:
    cost = _units(ALGORITHMS[collective][name], n, float(size))
    return {
        "rounds": float(cost.latency_time),
        "sent": float(cost.bytes_per_rank),
        "carried": float(cost.bandwidth_time),
        "combined": float(cost.reduction_time),
    }


def test_every_algorithm_is_executed():
    listed = {(collective, name) for collective, each in ALGORITHMS.items() for name in each}
    assert listed == set(EXECUTIONS) | STREAMING


def test_every_algorithm_is_listed_under_its_own_name():
    for collective, each in ALGORITHMS.items():
        for name, algorithm in each.items():
            assert (algorithm.collective, algorithm.name) == (collective, name)


@pytest.mark.parametrize(
    ("collective", "name"), [pytest.param(*each, id="-".join(each)) for each in sorted(EXECUTIONS)]
)
def test_counts_of_an_execution(collective, name):
    for n in RANKS:
        size = 64 * n  # divisible by n and by the power of 2 below it
        data = vectors(n, 64 if collective == "all-gather" else size)
        network = Network(n)
        result = EXECUTIONS[collective, name](network, data)
        network.settle()
        for held, wanted in zip(result, expected(collective, data), strict=True):
            np.testing.assert_equal(held, wanted)
        counted = {
            "rounds": network.rounds,
            "sent": network.sent.mean(),
            "carried": network.carried,
            "combined": network.combined,
        }
        assert closed_form(collective, name, n, size) == pytest.approx(counted, rel=1e-6), f"n = {n}"


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize("pieces", [1, 8, 64])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_chain_streams(collective, pieces, n):
    # With K pieces the last arrives K − 1 slots of B/K after the first, which took n − 1: α(n − 1) +
    # B/bandwidth as K grows.
    data, network = vectors(n, 64), Network(n)
    execute = run.chain_broadcast if collective == "broadcast" else run.chain_reduce
    result = execute(network, data, pieces)
    network.settle()
    np.testing.assert_equal(result, expected(collective, data))
    form = closed_form(collective, "ring", n, 64)
    assert network.rounds == (form["rounds"] + pieces - 1 if n > 1 else 0)
    assert network.sent.mean() == pytest.approx(form["sent"], rel=1e-6)
    assert max(network.sent.max(), network.received.max()) == form["carried"]
    assert form["combined"] == (form["carried"] if collective == "reduce" else 0)


@pytest.mark.parametrize("n", [*RANKS, 64, 100, 255])
def test_double_tree(n):
    data, network = vectors(n, 64), Network(n)
    result = run.double_tree_all_reduce(network, data)
    np.testing.assert_equal(result, expected("all-reduce", data))
    form = closed_form("all-reduce", "tree", n, 64)
    assert network.rounds == form["rounds"]
    assert network.sent.mean() == pytest.approx(form["sent"], rel=1e-6)
    assert max(network.sent.max(), network.received.max()) == form["carried"]
    assert network.combined_by_rank.max() == form["combined"]


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(
    ("collective", "ways"), [("all-reduce", 2), ("reduce", 1), ("broadcast", 1), ("barrier", 2)]
)
def test_in_network(collective, ways, n):
    data, network = vectors(n, 64), Network(n)
    np.testing.assert_equal(run.switch_reduce(network, data, RADIX), sum(data))
    form = closed_form(collective, "in-network", n, 0 if collective == "barrier" else 64)
    assert form["rounds"] == ways * network.rounds == ways * run.switch_levels(n, RADIX)
    moved = {"all-reduce": 64, "reduce": 64, "broadcast": 64 / n, "barrier": 0}[collective] if n > 1 else 0
    assert form["sent"] == pytest.approx(moved, rel=1e-6)
    assert form["carried"] == (0 if n == 1 or collective == "barrier" else 64)
    assert form["combined"] == 0


@pytest.mark.parametrize("n", [2, 4, 8, 64, 1024, 2**20])
@pytest.mark.parametrize(
    ("collective", "name", "rounds", "sent"),
    [
        # The textbook table (Thakur, Rabenseifner, Gropp 2005): rounds, and bytes each rank sends, with L =
        # log₂ n and B = 1.
        ("all-reduce", "ring", lambda n, L: 2 * (n - 1), lambda n, L: 2 * (n - 1) / n),
        ("all-reduce", "recursive-doubling", lambda n, L: L, lambda n, L: L),
        ("all-reduce", "halving-doubling", lambda n, L: 2 * L, lambda n, L: 2 * (n - 1) / n),
        ("all-reduce", "tree", lambda n, L: 2 * L, lambda n, L: 2 * (n - 1) / n),
        ("all-gather", "ring", lambda n, L: n - 1, lambda n, L: (n - 1) / n),
        ("reduce-scatter", "ring", lambda n, L: n - 1, lambda n, L: (n - 1) / n),
        ("all-gather", "recursive-doubling", lambda n, L: L, lambda n, L: (n - 1) / n),
        ("reduce-scatter", "recursive-halving", lambda n, L: L, lambda n, L: (n - 1) / n),
        ("all-to-all", "pairwise", lambda n, L: n - 1, lambda n, L: (n - 1) / n),
        ("all-to-all", "bruck", lambda n, L: L, lambda n, L: L / 2),
        ("all-to-all", "direct", lambda n, L: 1, lambda n, L: (n - 1) / n),
        ("broadcast", "binomial", lambda n, L: L, lambda n, L: (n - 1) / n),
        ("reduce", "binomial", lambda n, L: L, lambda n, L: (n - 1) / n),
        ("send-recv", "direct", lambda n, L: 1, lambda n, L: 1),
        ("barrier", "dissemination", lambda n, L: L, lambda n, L: 0),
    ],
)
def test_table_at_powers_of_two(collective, name, rounds, sent, n):
    form = closed_form(collective, name, n, 1)
    exponent = n.bit_length() - 1
    assert form["rounds"] == rounds(n, exponent)
    assert form["sent"] == pytest.approx(sent(n, exponent), rel=1e-6)
