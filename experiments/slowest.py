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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

# Okabe and Ito's colours, distinct to colour-blind readers; darker shades of them where they carry text.
TAIL, MEDIAN, INK, QUIET = "#B34700", "#005A91", "#222222", "#666666"
# Field of a row, colour, what it is called, size of the letters.
PARTS = (
    ("compute", "#56B4E9", "compute", 10),
    ("exchange", "#F0E442", "all-reduce", 8.5),
    ("wait", "#E69F00", "wait for\nthe slowest", 10),
)
FORMATS = (".svg", ".png", ".pdf")
TICKS = (8, 64, 1024, 16_384, 131_072, 1 << 20)


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
    """Draws the picture with matplotlib, in the format that the suffix of `file` names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # A salt and no date: the same rows give the same file.
    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        # A white ground, so that it reads on dark pages too.
        figure = Figure(figsize=(9.6, 4.1), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        _plot_quantiles(left, rows)
        _plot_parts(right, rows)
        left.set_ylabel("time of a step, ms")
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def _plot_quantiles(axes: "Axes", rows: Sequence[Row]) -> None:
    ranks = [row.ranks for row in rows]
    for name, colour in (("p99", TAIL), ("p50", MEDIAN)):
        times = [1e3 * getattr(row, name) for row in rows]
        axes.plot(ranks, times, color=colour, lw=2, marker="o", ms=4, clip_on=False, zorder=3)
    axes.plot(
        ranks, [1e3 * (row.compute + row.exchange) for row in rows], color=QUIET, lw=1.5, ls=(0, (4, 2))
    )
    last = rows[-1]
    label: dict[str, Any] = {"ha": "right", "textcoords": "offset points"}
    end = last.ranks
    axes.annotate("p99: 1 step in 100\nis longer", (end, 1e3 * last.p99), (-62, -22), color=TAIL, **label)
    axes.annotate("p50", (end, 1e3 * last.p50), (-14, -42), color=MEDIAN, **label)
    # Where the lines bend: the quickstart has one pause in 10,000 steps of a rank.
    small: dict[str, Any] = {"color": QUIET, "fontsize": 8.5, "ha": "right", "linespacing": 1.3}
    axes.text(160, 66, "from here\nsomebody pauses\nin 1 % of steps", **small)
    axes.text(7000, 66, "from here\nin half of them", **small)
    nobody = 1e3 * (last.compute + last.exchange)
    axes.annotate("if nobody waited", (end, nobody), (0, -14), color=QUIET, **label)
    _finish(axes, rows, "How long a step takes")


def _plot_parts(axes: "Axes", rows: Sequence[Row]) -> None:
    ranks = [row.ranks for row in rows]
    bottom = [0.0] * len(rows)
    for name, colour, text, size in PARTS:
        top = [low + 1e3 * getattr(row, name) for low, row in zip(bottom, rows, strict=True)]
        axes.fill_between(ranks, bottom, top, color=colour, lw=0)
        place = (ranks[-1], 0.5 * (bottom[-1] + top[-1]))
        label: dict[str, Any] = {"ha": "right", "va": "center", "color": INK, "fontsize": size}
        axes.annotate(text, place, (-6, 0), textcoords="offset points", **label)
        bottom = top
    axes.plot(ranks, bottom, color=INK, lw=1)
    axes.annotate("mean", (ranks[-1], bottom[-1]), (-4, 4), textcoords="offset points", ha="right", color=INK)
    _finish(axes, rows, "Where its mean goes")


def _finish(axes: "Axes", rows: Sequence[Row], title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("ranks that wait for each other")
    axes.set_xscale("log", base=2)
    axes.set_xlim(rows[0].ranks, rows[-1].ranks)
    axes.set_ylim(bottom=0)
    ticks = [count for count in TICKS if rows[0].ranks <= count <= rows[-1].ranks]
    axes.set_xticks(ticks, [f"{count:,}" for count in ticks])
    axes.minorticks_off()
    axes.tick_params(color=QUIET, labelcolor=INK)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color="#DDDDDD", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)


def _check_plot(parser: argparse.ArgumentParser, file: Path) -> None:
    """Before a minute of sampling, not after it."""
    if find_spec("matplotlib") is None:
        parser.error(
            "--plot: needs matplotlib, which is not installed; `pip install 'matplotlib>=3.9'` gets it"
        )
    if file.suffix not in FORMATS:
        parser.error(f"--plot: expected a file that ends in {', '.join(FORMATS)}; got {file}")
    if not file.parent.is_dir():
        parser.error(f"--plot: there is no folder {file.parent}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.slowest", description="The quickstart's step on 8 to 1,048,576 ranks."
    )
    parser.add_argument("--quick", action="store_true", help="three numbers of ranks, fewer samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, times in seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        _check_plot(parser, options.plot)
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
