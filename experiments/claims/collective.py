"""Rounds of trees, and where a ring overtakes a tree.

A tree that combines k inputs a round needs ⌈log_k n⌉ rounds up, and as many down again if all ranks want the
result. A tree has few rounds and a ring sends the fewest bytes, so the tree wins below one message size:
n(n − 1 − ⌈log₂ n⌉)·α·bandwidth, which grows with n.
"""

import numpy as np

from experiments.claims.claim import Claim, falls
from mc.collectives import Machine, algorithms, crossover_size, evaluate
from mc.fabric import Cluster, Link, Tier

# Sixteen ranks at 10 us a round. Inputs combined per round -> us, up only.
REDUCTION_TIME = {2: 40.0, 4: 20.0, 16: 10.0}
# (ranks, inputs per round) -> rounds of a reduce, rounds of an all-reduce.
ROUNDS = {(16, 4): (2, 4), (1000, 10): (3, 6), (100_000, 64): (3, 6)}
# Ranks -> MB, at 1 us and 100 GB/s.
CROSSOVER = {8: 3.2, 64: 364.8, 512: 25_702.4}
# Sizes on either side of the crossover, in multiples of it.
BELOW, ABOVE = 0.9, 1.1


def claims(samples: int) -> list[Claim]:
    """Times and rounds of trees; crossover sizes."""
    del samples
    return [*_trees(), *_crossovers()]


def _rounds_and_time(collective: str, ranks: int, radix: int) -> tuple[float, float]:
    machine = Machine(latency=10e-6, bandwidth=100e9, radix=radix)
    cost = algorithms(collective)["k-ary"].cost(ranks, 0.0, machine)
    return float(cost.rounds), float(cost.time) * 1e6


def _trees() -> list[Claim]:
    found = [
        Claim(
            f"reduction of 16 ranks, 10 us a round, {k} at a time, us",
            us,
            _rounds_and_time("reduce", 16, k)[1],
            1e-4,
        )
        for k, us in REDUCTION_TIME.items()
    ]
    for (ranks, radix), (up, both) in ROUNDS.items():
        text = f"{ranks:,} ranks, {radix} at a time: rounds"
        found.append(Claim(f"{text} of a reduce", up, _rounds_and_time("reduce", ranks, radix)[0]))
        found.append(Claim(f"{text} of an all-reduce", both, _rounds_and_time("all-reduce", ranks, radix)[0]))
    return found


def _crossovers() -> list[Claim]:
    link = Link(latency=1e-6, bandwidth=100e9)
    found, sizes, wrong = [], [], 0
    for ranks, expected in CROSSOVER.items():
        size = float(crossover_size(ranks, link))
        sizes.append(size)
        text = f"tree and ring all-reduce cross, {ranks} ranks, 1 us, 100 GB/s, MB"
        found.append(Claim(text, expected, size / 1e6, 1e-5 * expected))
        cluster = Cluster("flat", (Tier("fabric", link, ranks),))
        for factor, faster in ((BELOW, "tree"), (ABOVE, "ring")):
            rows = evaluate(cluster, "all-reduce", ranks, factor * size)
            times = {row.algorithm: row.time for row in rows}
            wrong += min(("tree", "ring"), key=times.__getitem__) != faster
    return [
        *found,
        Claim("sides of a crossover on which the wrong one is faster", 0, wrong),
        Claim("crossovers that are smaller with more ranks", 0, falls(np.asarray(sizes))),
    ]
