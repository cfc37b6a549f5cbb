"""The closed forms against schedules: rounds and bytes are those that were counted, message by message.

That the schedules yield the right result is tested in `tests/schedules`.
"""

import jax
import pytest

from mc.collectives import ALGORITHMS, AbstractAlgorithm, Machine
from mc.collectives.bidirectional_ring import (
    BidirectionalRingAllGather,
    BidirectionalRingAllReduce,
    BidirectionalRingReduceScatter,
)
from mc.collectives.gather import BinomialGather, BinomialScatter, DirectGather, DirectScatter
from mc.schedules import SCHEDULES, build, counts

RANKS = (*range(1, 34), 48, 64, 100, 128, 255)
RADIX = 3
FORMS: dict[tuple[str, str], AbstractAlgorithm] = {
    **{(collective, name): each for collective, known in ALGORITHMS.items() for name, each in known.items()},
    **{
        (each.collective, each.name): each
        for each in (
            BidirectionalRingAllGather(),
            BidirectionalRingAllReduce(),
            BidirectionalRingReduceScatter(),
            BinomialGather(),
            BinomialScatter(),
            DirectGather(),
            DirectScatter(),
        )
    },
}
# Their closed form is the limit of many small pieces.
STREAMS = {("all-reduce", "tree"), ("reduce", "ring"), ("broadcast", "ring")}
# They need a shape, a full mesh or a torus, and are counted in `tests/schedules`.
SHAPED = {
    *(
        (collective, "multi-ring")
        for collective in ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")
    ),
    *(
        (collective, "direct")
        for collective in ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce")
    ),
    ("all-reduce", "one-shot"),
}


@jax.jit
def _units(algorithm: AbstractAlgorithm, ranks, size):
    # One second per round, per byte carried and per byte combined; in seconds, the cost is the counts.
    machine = Machine(latency=1.0, bandwidth=1.0, reduction_time_per_byte=1.0, hop_latency=1.0, radix=RADIX)
    return algorithm.cost(ranks, size, machine)


def closed_form(collective: str, name: str, n: int, size: int) -> dict[str, float]:
    cost = _units(FORMS[collective, name], n, float(size))
    return {
        "rounds": float(cost.latency_time),
        "sent": float(cost.bytes_per_rank),
        "carried": float(cost.bandwidth_time),
        "combined": float(cost.reduction_time),
    }


def test_every_algorithm_has_a_schedule():
    listed = {(collective, name) for collective, known in SCHEDULES.items() for name in known}
    assert listed == set(FORMS) | SHAPED


def test_every_algorithm_is_listed_under_its_own_name():
    for collective, each in ALGORITHMS.items():
        for name, algorithm in each.items():
            assert (algorithm.collective, algorithm.name) == (collective, name)


@pytest.mark.parametrize(
    ("collective", "name"), [pytest.param(*each, id="-".join(each)) for each in sorted(set(FORMS) - STREAMS)]
)
def test_counts_of_a_schedule(collective, name):
    size = 0 if collective == "barrier" else 1
    for n in RANKS:
        found = counts(build(collective, name, n, radix=RADIX))
        counted = {
            "rounds": found.rounds,
            "sent": found.sent.mean(),
            "carried": found.carried,
            "combined": found.combined,
        }
        assert closed_form(collective, name, n, size) == pytest.approx(counted, rel=1e-6), f"n = {n}"


@pytest.mark.parametrize(
    ("collective", "name"), [pytest.param(*each, id="-".join(each)) for each in sorted(STREAMS)]
)
def test_counts_of_a_stream(collective, name):
    for n in RANKS:
        form = closed_form(collective, name, n, 1)
        for pieces in (1, 8):
            found = counts(build(collective, name, n, pieces=pieces))
            assert found.rounds == (form["rounds"] + pieces - 1 if n > 1 else 0)
            # The limit: the busiest rank is busy all the time.
            assert (found.sent.mean(), found.busiest_port, found.busiest_combined) == pytest.approx(
                (form["sent"], form["carried"], form["combined"]), rel=1e-6
            ), f"n = {n}"
        # All rounds carry at most what those of a full pipeline do: with many pieces few are not full.
        many = counts(build(collective, name, n, pieces=512))
        excess = (form["rounds"] - 1) / 512
        assert form["carried"] * (1 - 1e-6) <= many.carried <= form["carried"] * (1 + excess + 1e-6)


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
        ("gather", "binomial", lambda n, L: L, lambda n, L: L / (2 * n)),
        ("scatter", "direct", lambda n, L: 1, lambda n, L: (n - 1) / n**2),
        ("send-recv", "direct", lambda n, L: 1, lambda n, L: 1),
        ("barrier", "dissemination", lambda n, L: L, lambda n, L: 0),
    ],
)
def test_table_at_powers_of_two(collective, name, rounds, sent, n):
    form = closed_form(collective, name, n, 1)
    exponent = n.bit_length() - 1
    assert form["rounds"] == rounds(n, exponent)
    assert form["sent"] == pytest.approx(sent(n, exponent), rel=1e-6)
