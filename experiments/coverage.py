"""Do the intervals cover? For laws with known mean and quantiles, count how often the interval holds them.

    python -m experiments.coverage [--quick] [--json]

For every law, confidence and statistic: the fraction of simulated runs whose interval covers the truth, and
the fraction whose interval has no upper bound (which covers, but says nothing). The laws are chosen to hurt:
a long tail, rare pauses, ties, and runs whose steps share the persistent state of their realisation.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import optimize, stats

from mc.estimate import QUANTILES, estimate

Sampler = Callable[[np.random.Generator, int, int], NDArray[np.floating]]


@dataclass(frozen=True)
class Law:
    """A law of step times with a known mean and known quantiles.

    Attributes:
        name: what it is.
        realisations: rows of each simulated run.
        steps: columns of each simulated run.
        sample: (generator, realisations, steps) to float32 step times.
        mean: the true mean.
        quantile: the true quantile of a step, over realisations too.
    """

    name: str
    realisations: int
    steps: int
    sample: Sampler
    mean: float
    quantile: Callable[[float], float]

    def truth(self) -> dict[str, float]:
        """The true value of each statistic that a run reports."""
        return {"mean": self.mean} | {name: self.quantile(p) for name, p in QUANTILES.items()}


def _exponential(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
    return rng.exponential(size=(rows, columns))


def _lognormal(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
    return rng.lognormal(size=(rows, columns))


PAUSE, BASE, PAUSED = 0.01, 0.1, 5.0


def _pauses(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
    scale = np.where(rng.random((rows, columns)) < PAUSE, PAUSED, BASE)
    return 1.0 + scale * rng.exponential(size=(rows, columns))


def _pauses_survival(t: float) -> float:
    return (1 - PAUSE) * np.exp(-(t - 1) / BASE) + PAUSE * np.exp(-(t - 1) / PAUSED)


# No jump of the distribution function lies on a reported quantile, so each quantile is one number.
LEVELS, WEIGHTS = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.6, 0.3, 0.098, 0.002])


def _discrete(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
    return rng.choice(LEVELS, size=(rows, columns), p=WEIGHTS)


BETWEEN, WITHIN = 0.3, 0.5


def _effects(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
    return np.exp(BETWEEN * rng.standard_normal((rows, 1)) + WITHIN * rng.standard_normal((rows, columns)))


def _slow_chips(
    probability: float, slowdown: float, jitter: float = 0.2
) -> tuple[Sampler, float, Callable[[float], float]]:
    """With `probability` a realisation holds a slow chip: all its steps are `slowdown` times as long."""

    def sample(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.floating]:
        factor = np.where(rng.random((rows, 1)) < probability, slowdown, 1.0)
        return factor * (1.0 + jitter * rng.exponential(size=(rows, columns)))

    def survival(t: float) -> float:
        healthy, slow = (np.exp(-max(t / f - 1.0, 0.0) / jitter) for f in (1.0, slowdown))
        return (1 - probability) * healthy + probability * slow

    return sample, (1 + jitter) * (1 + probability * (slowdown - 1)), lambda p: _solve(survival, p, 1.0)


def _solve(survival: Callable[[float], float], probability: float, start: float) -> float:
    root = optimize.brentq(lambda t: survival(t) - (1 - probability), start, 1e3, xtol=1e-12)
    return float(root)  # pyright: ignore[reportArgumentType]


def _lognormal_quantile(sigma: float) -> Callable[[float], float]:
    return lambda p: float(np.exp(sigma * stats.norm.ppf(p)))


_SIGMA = float(np.hypot(BETWEEN, WITHIN))
LAWS = (
    Law("exponential", 1, 2000, _exponential, 1.0, lambda p: float(-np.log1p(-p))),
    Law("exponential, 200 steps", 1, 200, _exponential, 1.0, lambda p: float(-np.log1p(-p))),
    Law("lognormal, sigma 1", 1, 2000, _lognormal, float(np.exp(0.5)), _lognormal_quantile(1.0)),
    Law(
        "rare pauses (1 %)",
        1,
        5000,
        _pauses,
        1 + (1 - PAUSE) * BASE + PAUSE * PAUSED,
        lambda p: _solve(_pauses_survival, p, 1.0),
    ),
    Law(
        "discrete, four levels",
        1,
        2000,
        _discrete,
        float(LEVELS @ WEIGHTS),
        lambda p: float(LEVELS[np.searchsorted(np.cumsum(WEIGHTS), p)]),
    ),
    Law(
        "realisations, random effect",
        50,
        100,
        _effects,
        float(np.exp(_SIGMA**2 / 2)),
        _lognormal_quantile(_SIGMA),
    ),
    Law("realisations, no effect", 50, 100, _lognormal, float(np.exp(0.5)), _lognormal_quantile(1.0)),
    Law("realisations, slow chips (30 %)", 50, 100, *_slow_chips(0.3, 1.5)),
    Law("realisations, slow chips (10 %)", 50, 100, *_slow_chips(0.1, 1.5)),
)
# What no interval can see: with 3 % slow realisations, 0.97⁵⁰ = 22 % of all runs of 50 contain none.
BLIND = Law("realisations, slow chips (3 %)", 50, 100, *_slow_chips(0.03, 1.5))
CONFIDENCES = (0.9, 0.95)


@dataclass(frozen=True)
class Row:
    """One law, confidence and statistic: how many runs, how many cover, how many have no upper bound."""

    law: str
    realisations: int
    steps: int
    confidence: float
    statistic: str
    runs: int
    covered: int
    unbounded: int


def study(laws: tuple[Law, ...] = (*LAWS, BLIND), runs: int = 2000, seed: int = 20261202) -> list[Row]:
    """Simulates `runs` runs of each law and counts covers; each law has a stream of random numbers."""
    rows = []
    for index, law in enumerate(laws):
        truth = law.truth()
        counts = {(c, s): [0, 0] for c in CONFIDENCES for s in truth}
        rng = np.random.default_rng([seed, index])
        for _ in range(runs):
            samples = law.sample(rng, law.realisations, law.steps).astype(np.float32)
            for confidence in CONFIDENCES:
                for name, found in estimate(samples, confidence).items():
                    # One float32 rounding of slack, for the laws whose truth is itself a sample value.
                    slack = 1e-6 * truth[name]
                    counts[confidence, name][0] += found.low - slack <= truth[name] <= found.high + slack
                    counts[confidence, name][1] += found.high == np.inf
        rows += [
            Row(law.name, law.realisations, law.steps, *key, runs, *map(int, n)) for key, n in counts.items()
        ]
    return rows


def table(rows: list[Row]) -> Table:
    """One line for each law and confidence: coverages in %, in brackets the % of runs without upper bound."""
    shown = Table(title=f"Coverage of the intervals, {rows[0].runs} simulated runs each")
    for heading in ("law", "R x M", "nominal", "mean", *QUANTILES):
        shown.add_column(heading, justify="left" if heading == "law" else "right")
    lines: dict[tuple[str, str, float], list[str]] = {}
    for row in rows:
        shape = f"{row.realisations} x {row.steps}"
        cell = f"{100 * row.covered / row.runs:.1f}"
        if row.unbounded:
            cell += f" ({100 * row.unbounded / row.runs:.0f})"
        lines.setdefault((row.law, shape, row.confidence), []).append(cell)
    for (law, shape, confidence), cells in lines.items():
        shown.add_row(law, shape, f"{100 * confidence:g}", *cells)
    return shown


def main() -> None:
    """Runs the study and prints it."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals, by simulation.")
    parser.add_argument("--quick", action="store_true", help="200 runs of each law instead of 2000")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args()
    rows = study(runs=200 if options.quick else 2000)
    if options.json:
        print(json.dumps([vars(row) for row in rows], indent=2))
    else:
        Console(width=120).print(table(rows))


if __name__ == "__main__":
    main()
