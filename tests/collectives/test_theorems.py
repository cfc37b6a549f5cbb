"""What must hold of any algorithm, and the numbers that the project began with."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc.collectives import ALGORITHMS, Cost, Machine, algorithms
from mc.collectives.in_network import IN_NETWORK

EVERY = [
    pytest.param(collective, name, id=f"{collective}-{name}")
    for collective, each in ALGORITHMS.items()
    for name in each
]
# Rounds that are fewer for a power of 2 than for the number below it; Bruck's bytes fall after a power of 2
# (3/2·B at 8, 13/9·B at 9). A switch copies a broadcast, so the mean that a rank sends, but not the time,
# falls with n.
NOT_MONOTONE = {
    ("all-reduce", "recursive-doubling"),
    ("all-reduce", "halving-doubling"),
    ("all-to-all", "bruck"),
}


@jax.jit
def _time(algorithm, ranks, size, latency, bandwidth, gamma, hop_latency, radix) -> Cost:
    return algorithm.cost(ranks, size, Machine(latency, bandwidth, gamma, hop_latency, radix))


def price(
    collective, name, ranks, size, *, latency=1e-6, bandwidth=1e11, gamma=0.0, hop_latency=1e-6, radix=4
) -> Cost:
    algorithm = algorithms(collective)[name]
    return _time(algorithm, float(ranks), float(size), latency, bandwidth, gamma, hop_latency, radix)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_one_rank_costs_nothing(collective, name):
    cost = price(collective, name, 1, 1e9, gamma=1e-9)
    assert [float(each) for each in jax.tree.leaves(cost)] == [0.0] * 5
    assert float(cost.time) == 0.0


# E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective communication: theory, practice, and
# experience", Concurrency and Computation 19 (2007), table I: least latencies with one port, and least bytes
# through the busiest port.
LEAST_BYTES = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce": lambda n: 1.0,
    "broadcast": lambda n: 1.0,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
}
SEVERAL_PORTS = {"k-ary", "direct", IN_NETWORK}


@pytest.mark.parametrize("collective", LEAST_BYTES)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 12, 100, 1023, 1024, 1025])
def test_lower_bounds(collective, n):
    for name in algorithms(collective):
        cost = price(collective, name, n, 1.0, latency=1.0, bandwidth=1.0)
        if name != IN_NETWORK:
            assert float(cost.bandwidth_time) >= LEAST_BYTES[collective](n) * (1 - 1e-6), name
        if name not in SEVERAL_PORTS:
            assert float(cost.rounds) >= (n - 1).bit_length(), name
            assert float(cost.latency_time) == float(cost.rounds)


@pytest.mark.parametrize("n", [2, 3, 5, 16, 17, 1000])
def test_all_reduce_sends_at_least_what_must_move(n):
    # In total 2(n−1)B must be sent whoever sends it (Patarasuk & Yuan 2009).
    for name in algorithms("all-reduce"):
        if name != IN_NETWORK:
            assert float(price("all-reduce", name, n, 1.0).bytes_per_rank) >= 2 * (n - 1) / n * (1 - 1e-6)


def test_several_ports_bound_rounds_from_below():
    # With k − 1 messages taken in per round, at most k^rounds ranks can be heard from.
    for n in range(2, 200):
        for radix in (2, 3, 8):
            rounds = int(price("reduce", "k-ary", n, 0, radix=radix).rounds)
            assert radix ** (rounds - 1) < n <= radix**rounds


positive = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(("collective", "name"), EVERY)
@settings(max_examples=25, deadline=None)
@given(
    ranks=st.integers(1, 5000),
    scale=positive,
    factor=st.floats(1.0, 100.0),
    gamma=st.sampled_from([0.0, 1e-12]),
)
def test_time_is_monotone(collective, name, ranks, scale, factor, gamma):
    size, bandwidth = 1e6 * scale, 1e11
    base = float(price(collective, name, ranks, size, gamma=gamma).time)
    slack = 1 + 1e-6  # float32

    def time(**changes):
        arguments = {"size": size, "bandwidth": bandwidth, "gamma": gamma} | changes
        return float(price(collective, name, ranks, arguments.pop("size"), **arguments).time)

    assert time(size=size * factor) * slack >= base
    assert time(latency=1e-6 * factor, hop_latency=1e-6 * factor) * slack >= base
    assert time(bandwidth=bandwidth * factor) <= base * slack
    if (collective, name) not in NOT_MONOTONE:
        more = float(price(collective, name, round(ranks * factor), size, gamma=gamma).time)
        assert more * slack >= base


def test_the_exceptions_are_exceptions():
    assert int(price("all-reduce", "recursive-doubling", 7, 0).rounds) > int(
        price("all-reduce", "recursive-doubling", 8, 0).rounds
    )
    assert float(price("all-to-all", "bruck", 8, 1e9).time) > float(price("all-to-all", "bruck", 9, 1e9).time)


ROUND = 10e-6


@pytest.mark.parametrize(
    ("name", "radix", "seconds"),
    [("binomial", 2, 40e-6), ("k-ary", 2, 40e-6), ("k-ary", 4, 20e-6), ("k-ary", 16, 10e-6)],
)
def test_sixteen_ranks_at_ten_microseconds_a_round(name, radix, seconds):
    up = price("reduce", name, 16, 0, latency=ROUND, radix=radix)
    assert float(up.time) == pytest.approx(seconds, rel=1e-6)
    # An all-reduce goes up and down: 2·log_k n rounds against log_k n.
    both = price("all-reduce", name, 16, 0, latency=ROUND, radix=radix)
    assert float(both.time) == pytest.approx(2 * seconds, rel=1e-6)
    assert int(both.rounds) == 2 * int(up.rounds)


@pytest.mark.parametrize(("radix", "seconds"), [(2, 40e-6), (4, 20e-6), (16, 10e-6)])
def test_sixteen_ranks_through_switches(radix, seconds):
    up = price("reduce", IN_NETWORK, 16, 0, hop_latency=ROUND, radix=radix)
    assert float(up.time) == pytest.approx(seconds, rel=1e-6)
    both = price("all-reduce", IN_NETWORK, 16, 0, hop_latency=ROUND, radix=radix)
    assert float(both.time) == pytest.approx(2 * seconds, rel=1e-6)


@pytest.mark.parametrize("name", sorted(ALGORITHMS["all-reduce"]))
def test_time_is_the_sum_of_its_parts(name):
    cost = price("all-reduce", name, 100, 1e8, gamma=1e-12)
    parts = (cost.latency_time, cost.bandwidth_time, cost.reduction_time)
    assert float(cost.time) == pytest.approx(sum(float(part) for part in parts), rel=1e-6)
    assert np.all(np.asarray(parts) >= 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": 0}, "ranks: expected a number >= 1; got 0"),
        ({"size": -1.0}, "size: expected a number >= 0; got -1.0"),
        ({"latency": -1e-6}, "latency: expected a number >= 0; got -1e-06"),
        ({"bandwidth": 0.0}, "bandwidth: expected a number > 0; got 0.0"),
        ({"bandwidth": float("inf")}, "bandwidth: expected a finite number; got inf"),
        (
            {"reduction_time_per_byte": float("nan")},
            "reduction_time_per_byte: expected a finite number; got nan",
        ),
        ({"radix": 1}, "radix: expected a whole number >= 2; got 1"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    ranks, size = arguments.pop("ranks", 4), arguments.pop("size", 1.0)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        algorithms("all-reduce")["ring"].cost(
            ranks, size, Machine(**({"latency": 1e-6, "bandwidth": 1e9} | arguments))
        )
