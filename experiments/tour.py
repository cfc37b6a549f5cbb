"""Two pictures for the tour: what leaving the package costs, and why a faster chip does not make a faster step.

    python -m experiments.tour [--quick] [--json] [--plot FILE]

The first is the catalog's: seconds per byte in one direction, latency and joules per bit of links, over those between two dies.
The second runs the step of `experiments.claims.step`, 100 us of compute and 50 us of exchange, on chips that are faster and faster.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from experiments.claims.step import experiment
from experiments.slowest import INK, MEDIAN, QUIET, TAIL, _check_plot
from mc.catalog import link
from mc.experiment import run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINKS = ("die-to-die", "NVLink-5", "InfiniBand-XDR", "inter-site-800ZR")
PLACES = ("package", "rack", "hall", "sites, 80 km apart")
FACTORS, QUICK_FACTORS = (1, 2, 4, 8, 16, 32), (1, 4, 16)
# Field of a link, what it is called, colour, by how many points its name stands above its end.
LINES = (
    ("slowness", "time of a byte", MEDIAN, -16),
    ("latency", "latency", TAIL, 4),
    ("energy", "energy of a bit", "#00734D", 5),
)


@dataclass(frozen=True)
class Hop:
    """A link over the one between two dies: how many times the seconds per byte, the latency and the joules per bit."""

    link: str
    slowness: float
    latency: float
    energy: float


@dataclass(frozen=True)
class Chip:
    """A chip `factor` times as fast: seconds of compute and of exchange, and the speed-up of the step."""

    factor: int
    compute: float
    exchange: float
    speed_up: float


def hops() -> list[Hop]:
    """From the package outwards."""
    found = []
    first = link(LINKS[0])
    for name in LINKS:
        here = link(name)
        assert here.energy_per_bit is not None
        assert first.energy_per_bit is not None
        found.append(
            Hop(
                name,
                first.bandwidth_per_direction / here.bandwidth_per_direction,
                here.latency.value / first.latency.value,
                here.energy_per_bit.value / first.energy_per_bit.value,
            )
        )
    return found


def chips(factors: Sequence[int] = FACTORS) -> list[Chip]:
    """Runs the step on each chip."""
    found: list[Chip] = []
    for factor in factors:
        result = run(experiment(factor))
        parts = {part.name: part.time.value for part in result.waterfall.parts}
        compute = parts.pop("compute")
        exchange = sum(parts.values())
        base = found[0].compute + found[0].exchange if found else compute + exchange
        found.append(Chip(factor, compute, exchange, base / (compute + exchange)))
    return found


def tables(links: Sequence[Hop], steps: Sequence[Chip]) -> list[Table]:
    """Both, as tables."""
    outwards = Table(
        "link", "time of a byte", "latency", "energy of a bit", title="over die-to-die", box=None
    )
    for hop in links:
        outwards.add_row(hop.link, *(f"{value:,.4g}x" for value in (hop.slowness, hop.latency, hop.energy)))
    faster = Table("chip", "compute, us", "exchange, us", "step", title="100 us + 50 us", box=None)
    for step in steps:
        times = (f"{1e6 * step.compute:.2f}", f"{1e6 * step.exchange:.2f}")
        faster.add_row(f"{step.factor}x", *times, f"{step.speed_up:.2f}x as fast")
    return [outwards, faster]


def plot(links: Sequence[Hop], steps: Sequence[Chip], file: Path) -> None:
    """Draws the two pictures side by side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        figure = Figure(figsize=(9.6, 3.8), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2)
        _plot_hops(left, links)
        _plot_chips(right, steps)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def _plot_hops(axes: "Axes", links: Sequence[Hop]) -> None:
    places = range(len(links))
    label: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": 9}
    for field, name, colour, above in LINES:
        values = [getattr(hop, field) for hop in links]
        axes.plot(places, values, color=colour, lw=2, marker="o", ms=4)
        axes.annotate(name, (places[-1], values[-1]), (4, above), color=colour, **label)
    axes.set_yscale("log")
    axes.set_xticks(places, PLACES, fontsize=8.5)
    axes.set_ylabel("times that between two dies")
    _finish(axes, "What leaving the package costs")


def _plot_chips(axes: "Axes", steps: Sequence[Chip]) -> None:
    places = range(len(steps))
    compute = [1e6 * step.compute for step in steps]
    axes.bar(places, compute, color="#56B4E9", label="compute")
    exchange = [1e6 * step.exchange for step in steps]
    axes.bar(places, exchange, bottom=compute, color="#F0E442", label="exchange")
    for place, low, high, step in zip(places, compute, exchange, steps, strict=True):
        axes.annotate(
            f"{step.speed_up:.2f}x", (place, low + high), (0, 3), textcoords="offset points", ha="center"
        )
    axes.set_xticks(places, [f"{step.factor}x" for step in steps])
    axes.set_xlabel("speed of the chip")
    axes.set_ylabel("time of a step, us")
    axes.legend(frameon=False)
    _finish(axes, "What a faster chip brings")


def _finish(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.tick_params(color=QUIET, labelcolor=INK)
    axes.grid(axis="y", color="#DDDDDD", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Computes both, prints them and draws them; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.tour", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="three chips")
    parser.add_argument("--json", action="store_true", help="print one JSON object, times in seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        _check_plot(parser, options.plot)
    links, steps = hops(), chips(QUICK_FACTORS if options.quick else FACTORS)
    if options.json:
        print(json.dumps({"hops": [asdict(hop) for hop in links], "chips": [asdict(step) for step in steps]}))
    else:
        for each in tables(links, steps):
            Console(width=100).print(each)
    if options.plot is not None:
        plot(links, steps, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
