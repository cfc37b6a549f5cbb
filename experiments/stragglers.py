"""Two kinds of slow in measured steps: what stays, and what comes and goes.

    python -m experiments.stragglers [--quick] [--json] [--plot FILE]

Three public records are described twice. *One lognormal*: every rank of every step draws from one law, fitted to all
of them. *Persistent and transient*: ranks that are slow throughout keep a factor, and in each step the job and each
rank draw a factor of their own. Both descriptions are given to the engine, which draws the slowest rank of a step; the
figures are how far its law lies from the measured one (Kolmogorov-Smirnov), and how alike a rank's successive steps are.

A rank is counted as slow for good if its median is 20 % above the others', a job (of which only whole steps are known)
if its steps are 3 % above its first ones. The data are relative to what the same work takes elsewhere in the
job: `experiments/data/straggler_ratios.csv` names the sources.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from mc.delays import Lognormal
from mc.step import Classes, Compute, Persistent, SharedNoise

DATA = Path(__file__).parent / "data" / "straggler_ratios.csv"
TRACES = {
    "AR": "64 GPUs, one worker slowed down",
    "ST": "8 GPUs, healthy",
    "BLOOM": "384 GPUs, one slows down",
}
ONE, BOTH = "one lognormal", "persistent and transient"
SAMPLES, QUICK_SAMPLES = 100_000, 5_000
SLOW_RANK, SLOW_JOB = 1.2, 1.03
# A factor without spread of its own: the law needs some.
_LEAST = 1e-5


@dataclass(frozen=True)
class Row:
    """One description of one record; times are relative.

    Attributes:
        trace: which record.
        model: which description.
        ks: largest distance between the distribution functions of the slowest rank, measured and drawn.
        p50: median of the slowest rank by the description.
        p99: its 99 % quantile.
        measured_p50: median of the measured slowest rank.
        measured_max: the largest measured one.
        autocorrelation: of a rank's time from one step to the next, by the description.
        measured_autocorrelation: the measured one.
    """

    trace: str
    model: str
    ks: float
    p50: float
    p99: float
    measured_p50: float
    measured_max: float
    autocorrelation: float
    measured_autocorrelation: float


@dataclass(frozen=True)
class Fit:
    """A description of a record, in logarithms.

    Attributes:
        slow: probability that a rank is slow for good; in a record of one job, that a step finds it slow.
        slowdown: how much.
        median: of a healthy rank.
        job: standard deviation of the factor that a step's ranks share.
        rank: standard deviation of each rank's own.
    """

    slow: float
    slowdown: float
    median: float
    job: float
    rank: float

    @property
    def autocorrelation(self) -> float:
        """Of a rank's logarithm between steps: the persistent share of the variance."""
        stays = self.slow * (1 - self.slow) * np.log(self.slowdown) ** 2
        return float(stays / (stays + self.job**2 + self.rank**2))


def load() -> dict[str, NDArray[np.float64]]:
    """The records: (steps, ranks) of relative times."""
    lines = [line for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    steps: dict[str, dict[int, list[float]]] = {}
    for row in csv.DictReader(lines):
        steps.setdefault(row["trace"], {}).setdefault(int(row["step"]), []).append(float(row["ratio"]))
    return {trace: np.asarray(list(rows.values())) for trace, rows in steps.items()}


def fit_one(times: NDArray[np.float64]) -> Fit:
    """One lognormal for all: mean and standard deviation of the logarithms."""
    logs = np.log(times)
    return Fit(0.0, 1.0, float(np.exp(logs.mean())), 0.0, float(logs.std()))


def fit_both(times: NDArray[np.float64]) -> Fit:
    """Slow ranks by their median; what is left, split into a part that a step's ranks share and each one's own."""
    logs = np.log(times)
    if times.shape[1] == 1:
        slow = times > SLOW_JOB * np.median(times[:3])
    else:
        slow = np.broadcast_to(np.median(times, axis=0) > SLOW_RANK * np.median(times), times.shape)
    slowdown = float(np.exp(logs[slow].mean() - logs[~slow].mean())) if slow.any() else 1.0
    rest = logs - np.where(slow, np.log(slowdown), 0.0)
    shared, ranks = rest.mean(axis=1), times.shape[1]
    own = (rest - shared[:, None]).std() * np.sqrt(ranks / max(ranks - 1, 1))
    job = np.sqrt(max(shared.var() - own**2 / ranks, 0.0))
    return Fit(float(slow.mean()), slowdown, float(np.exp(rest.mean())), float(job), float(own))


def draw(fit: Fit, ranks: int, samples: int) -> NDArray[np.float64]:
    """The slowest rank of steps, by the engine."""
    rank = Lognormal(fit.median, max(fit.rank, _LEAST))
    job = (SharedNoise(ranks, spread=Lognormal(1.0, max(fit.job, _LEAST))),)
    persistent = (Persistent("slow", 1, fit.slow, fit.slowdown),)
    sample = eqx.filter_jit(lambda compute, key, classes: compute.draw(key, samples, classes=classes))
    # The realisation that was measured: so many slow ranks, or a job that was slow in so many of its steps.
    slow = round(fit.slow * ranks) if ranks > 1 else 0
    key, choices = jax.random.key(2, impl="threefry2x32"), jnp.array([[0.0], [1.0]])
    healthy = Classes(choices, jnp.array([float(ranks - slow), float(slow)]))
    drawn = np.asarray(sample(Compute(rank, ranks, persistent, job=job), key, healthy), np.float64)
    if ranks == 1:
        drawn = drawn * np.where(np.arange(samples) < round(fit.slow * samples), fit.slowdown, 1.0)
    return drawn


def autocorrelation(times: NDArray[np.float64]) -> float:
    """Of a rank's logarithm, from one recorded step to the next."""
    logs = np.log(times)
    centred = logs - logs.mean()
    return float((centred[1:] * centred[:-1]).mean() / (centred**2).mean())


def distance(measured: NDArray[np.float64], drawn: NDArray[np.float64]) -> float:
    """Largest distance between two empirical distribution functions."""
    both = np.concatenate([measured, drawn])
    first, second = (np.searchsorted(np.sort(part), both, "right") / part.size for part in (measured, drawn))
    return float(np.abs(first - second).max())


def study(samples: int = SAMPLES) -> list[Row]:
    """Both descriptions of each record."""
    rows = []
    for trace, times in load().items():
        measured = times.max(axis=1)
        for model, fit in ((ONE, fit_one(times)), (BOTH, fit_both(times))):
            drawn = draw(fit, times.shape[1], samples)
            row = Row(
                trace,
                model,
                distance(measured, drawn),
                float(np.median(drawn)),
                float(np.quantile(drawn, 0.99)),
                float(np.median(measured)),
                float(measured.max()),
                fit.autocorrelation,
                autocorrelation(times),
            )
            rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> Table:
    """One line per record and description."""
    shown = Table(
        title="The slowest rank of a step, relative", title_justify="left", box=None, pad_edge=False
    )
    headings = (
        "record",
        "described as",
        "KS distance",
        "p50",
        "p99",
        "measured p50",
        "max",
        "autocorrelation",
        "measured",
    )
    for place, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if place < 2 else "right")
    for row in rows:
        figures = (row.ks, row.p50, row.p99, row.measured_p50, row.measured_max)
        likeness = (f"{row.autocorrelation:.2f}", f"{row.measured_autocorrelation:.2f}")
        shown.add_row(row.trace, row.model, *(f"{figure:.3f}" for figure in figures), *likeness)
    return shown


def plot(file: Path, samples: int = QUICK_SAMPLES) -> None:
    """Draws the distribution functions with matplotlib, in the format that the suffix of `file` names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 9, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.6, 3.4), layout="constrained")
        panels = figure.subplots(1, len(TRACES), sharey=True)
        for axes, (trace, times) in zip(panels, load().items(), strict=True):
            measured = np.sort(times.max(axis=1))
            axes.step(
                measured, np.arange(1, measured.size + 1) / measured.size, "k", where="post", label="measured"
            )
            for model, fit, colour in ((ONE, fit_one(times), "#B34700"), (BOTH, fit_both(times), "#005A91")):
                drawn = np.sort(draw(fit, times.shape[1], samples))
                axes.plot(drawn, (np.arange(samples) + 0.5) / samples, color=colour, label=model)
            axes.set_title(f"{trace}: {TRACES[trace]}", loc="left", fontsize=9, fontweight="bold")
            axes.set_xlabel("slowest rank over a typical one")
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("share of the steps")
        panels[0].legend(frameon=False, loc="upper left", fontsize=8)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.stragglers",
        description="Persistent and transient slowness in measured steps.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    rows = study(QUICK_SAMPLES if options.quick else SAMPLES)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=130).print(table(rows))
    if options.plot is not None:
        plot(options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
