"""Two smaller records against the same picture: one slow GPU in a job of 384, and who arrives when among 4,096 ranks.

BLOOM (176B, 384 A100: TP 4, PP 12, DP 8; 2,048 sequences in micro-batches of 2) went from 105.2 to 111.1 s a step when one
GPU became slow; a benchmark found its node 2.4 % slower (296.5 to 303.6 s). All replicas wait for the one whose pipeline
has the slow stage. Source: bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles.md at 9e64edec2ad1.

Of a collective on Frontier it is known how long the first rank to arrive was in it, the last one, and all on average; so where
between first and last the mean arrival lies. If ranks arrive independently by one law, then that place is nearly
the same for all collectives, since 4,096 ranks show the whole law. Source: `experiments/data/arrival_skew.csv`.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from mc.pipeline import makespan

_SKEW = Path(__file__).parent.parent / "data" / "arrival_skew.csv"
STAGES, MICRO_BATCHES, RANKS = 12, 128, 4_096
BEFORE, AFTER = 105.17, 111.14
BENCHMARK = 303.6 / 296.5
# With all activations recomputed a backward takes three forwards: forward, inputs, weights.
_PASSES = (1.0, 2.0, 1.0)
_TRIALS = 400


@dataclass(frozen=True)
class SlowGpu:
    """What one slow stage does to BLOOM's step; ratios of steps.

    Attributes:
        measured: after over before.
        expected: by the pipeline, with the slowdown of the benchmark.
        slowdown: what the stage must have been slower by to give the measured ratio.
    """

    measured: float
    expected: float
    slowdown: float


@dataclass(frozen=True)
class Arrivals:
    """Where the mean arrival lies between the first (0) and the last (1).

    Attributes:
        law: of ranks that arrive independently; or `measured`.
        least: 0.5 % quantile; of the measured ones, the least.
        most: 99.5 % quantile, or the largest.
        inside: share of the measured collectives in between.
    """

    law: str
    least: float
    most: float
    inside: float


def slow_gpu() -> SlowGpu:
    """BLOOM's step with a slow stage, where the rest of the step is negligible."""

    def ratio(slowdown: float) -> float:
        factor = np.ones((STAGES, 1))
        factor[STAGES // 2] = slowdown
        ahead, inputs, weights = (each * factor for each in _PASSES)
        finish = makespan(
            "1f1b",
            STAGES,
            MICRO_BATCHES,
            forward=ahead,
            backward_input=inputs,
            backward_weight=weights,
        )
        return float(finish.makespan)

    even, measured = ratio(1.0), AFTER / BEFORE
    took = optimize.brentq(lambda slowdown: ratio(slowdown) / even - measured, 1.0, 2.0)
    return SlowGpu(measured, ratio(BENCHMARK) / even, float(took))  # pyright: ignore[reportArgumentType]


def skew() -> NDArray[np.float64]:
    """Longest, shortest and mean milliseconds in each collective, [collectives, 3]."""
    with _SKEW.open(encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return np.array([[float(row[name]) for name in ("longest", "shortest", "mean")] for row in rows])


def arrivals() -> tuple[Arrivals, ...]:
    """Measured, and by three laws."""
    longest, shortest, mean = skew().T
    measured = (longest - mean) / (longest - shortest)
    rng = np.random.default_rng(5)
    shape = (_TRIALS, RANKS)
    laws = {
        "normal": rng.normal(size=shape),
        "lognormal, 20 %": rng.lognormal(0.0, 0.2, shape),
        "exponential": rng.exponential(size=shape),
    }
    found = [Arrivals("measured", float(measured.min()), float(measured.max()), 1.0)]
    for law, times in laws.items():
        first, last = times.min(axis=1), times.max(axis=1)
        least, most = np.quantile((times.mean(axis=1) - first) / (last - first), (0.005, 0.995))
        inside = np.mean((measured >= least) & (measured <= most))
        found.append(Arrivals(law, float(least), float(most), float(inside)))
    return tuple(found)
