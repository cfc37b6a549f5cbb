"""Waiting for the slowest: the step of the quickstart on 8 to 1,048,576 ranks.

    python -m experiments.slowest [--quick] [--json] [--plot FILE]

Weak scaling: each rank does the same work whatever their number, so with alike chips and a network that reduces on
the way the step would hardly get longer. What grows is the wait for the slowest. The cluster is that of the
quickstart with a larger outermost tier; nothing else changes, and all sizes share their random numbers.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from mc.config import load_experiment
from mc.experiment import run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANKS = tuple(2**power for power in range(3, 21))
QUICK_RANKS = (8, 1024, 1 << 20)
# Many realisations, because on few ranks most clusters have no slow chip at all.
SAMPLES, QUICK_SAMPLES, REALISATIONS = 100_000, 20_000, 1000
# 8 x 32 x 4096 ranks: nodes and scalable units as they are, more units.
CLUSTER = "cluster.tiers.2.fan_out=4096"

# Okabe and Ito's colours, distinct to colour-blind readers, each light enough for black text.
COMPUTE, EXCHANGE, WAIT, TAIL, INK = "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#222222"


@dataclass(frozen=True)
class Row:
    """One number of ranks; all times in seconds, intervals (low, high) of confidence 95 %.

    Attributes:
        ranks: how many wait for each other.
        mean: mean step time.
        p50: median step time.
        p99: the time that one step in a hundred exceeds.
        p50_interval: interval of the median.
        p99_interval: interval of p99; the upper end is None where the samples give none.
        compute: what a rank computes if it waits for nobody, the mean.
        wait: mean wait for the slowest rank.
        exchange: bytes, latency and congestion, the mean.
    """

    ranks: int
    mean: float
    p50: float
    p99: float
    p50_interval: tuple[float, float | None]
    p99_interval: tuple[float, float | None]
    compute: float
    wait: float
    exchange: float


def study(ranks: Sequence[int] = RANKS, samples: int = SAMPLES, overrides: Sequence[str] = ()) -> list[Row]:
    """Runs the quickstart on each number of ranks; `overrides` are as after `--set`."""
    return [_row(count, samples, overrides) for count in ranks]


def _row(ranks: int, samples: int, overrides: Sequence[str]) -> Row:
    sampling = [f"run.samples={samples}", f"run.realisations={REALISATIONS}"]
    result = run(load_experiment(None, [CLUSTER, f"plan.ranks={ranks}", *sampling, *overrides]))
    found = result.estimates
    parts = {part.name: part.time.value for part in result.waterfall.parts}
    compute, wait = parts.pop("compute"), parts.pop("straggler_wait")

    def interval(low: float, high: float) -> tuple[float, float | None]:
        return low, high if high < float("inf") else None

    return Row(
        ranks=ranks,
        mean=found.mean.value,
        p50=found.p50.value,
        p99=found.p99.value,
        p50_interval=interval(found.p50.low, found.p50.high),
        p99_interval=interval(found.p99.low, found.p99.high),
        compute=compute,
        wait=wait,
        exchange=sum(parts.values()),
    )


def table(rows: Sequence[Row]) -> Table:
    """One line per number of ranks, in milliseconds."""
    shown = Table(title="The quickstart's step, ms", title_justify="left", box=None, pad_edge=False)
    for heading in ("ranks", "mean", "p50", "p99", "compute", "wait for the slowest", "exchange"):
        shown.add_column(heading, justify="right")
    for row in rows:
        times = (row.mean, row.p50, row.p99, row.compute, row.wait, row.exchange)
        shown.add_row(f"{row.ranks:,}", *(f"{1e3 * time:.2f}" for time in times))
    return shown


def plot(rows: Sequence[Row], file: Path) -> None:
    """Draws the picture; the suffix of `file` says how (`.svg`, `.png`, `.pdf`).

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # A salt and no date: the same rows give the same file.
    style = {"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.6, 4.0), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr]
        _plot_quantiles(left, rows)
        _plot_parts(right, rows)
        left.set_ylabel("step time, ms")
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, metadata=metadata, dpi=150)


def _plot_quantiles(axes: "Axes", rows: Sequence[Row]) -> None:
    ranks = [row.ranks for row in rows]
    for name, colour, width in (("p99", TAIL, 2.0), ("p50", "#0072B2", 2.0)):
        axes.plot(ranks, [1e3 * getattr(row, name) for row in rows], color=colour, lw=width, marker="o", ms=3.5)
    floor = [1e3 * (row.compute + row.exchange) for row in rows]
    axes.plot(ranks, floor, color="#666666", lw=1.4, ls=(0, (4, 2)))
    _label(axes, rows, 1e3 * rows[-1].p99, "p99: one step in 100\ntakes longer", TAIL, (-8, -2), "right", "top")
    del floor
    _finish(axes, rows, "How long a step takes")


def _plot_parts(axes: "Axes", rows: Sequence[Row]) -> None:
    ranks = [row.ranks for row in rows]
    bottom = [0.0] * len(rows)
    for name, colour in (("compute", COMPUTE), ("exchange", EXCHANGE), ("wait", WAIT)):
        top = [low + 1e3 * getattr(row, name) for low, row in zip(bottom, rows, strict=True)]
        axes.fill_between(ranks, bottom, top, color=colour, lw=0)
        bottom = top
    _finish(axes, rows, "Where its mean goes")


def _finish(axes: "Axes", rows: Sequence[Row], title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("ranks that wait for each other")


def _label(axes, rows, y, text, colour, offset, horizontal, vertical) -> None:
    axes.annotate(text, (rows[-1].ranks, y), offset, textcoords="offset points", color=colour, ha=horizontal, va=vertical)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.slowest", description="The quickstart's step on 8 to 1,048,576 ranks."
    )
    parser.add_argument("--quick", action="store_true", help="three numbers of ranks, fewer samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, times in seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    rows = study(QUICK_RANKS, QUICK_SAMPLES) if options.quick else study()
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=100).print(table(rows))
    if options.plot is not None:
        plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
