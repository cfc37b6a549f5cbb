"""All-reduce with and without reduction in the network, on 8 to 131,072 ranks.

    python -m experiments.in_network [--quick] [--json] [--plot FILE]

The cluster is `dgx-h100-superpod` with more scalable units. Each switch adds up what comes in and passes one
stream on, so a message takes a hop per level instead of a message per round: the depth grows by one where the
number of ranks grows by the switches' radix. Compared are the switches (`in-network`), the double tree, the ring,
and the tiered form, each by its fastest protocol, for a message that latency rules and one that bandwidth
rules; means and p99 under the cluster's own jitter.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from mc.collectives import plans
from mc.config import load_cluster
from mc.errors import InputError
from mc.exchange import sample_times
from mc.fabric import build_cluster, build_link_noise
from mc.report import progress
from mc.report.pictures.base import check_plot

RANKS = (8, 64, 256, 1024, 8192, 32_768, 131_072)
QUICK_RANKS = (8, 256)
SIZES = {"64 KiB": 64 * 1024.0, "256 MiB": 256 * 1024.0**2}
ALGORITHMS = ("in-network", "tree", "ring", "hierarchical")
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
CLUSTER, UNITS = "dgx-h100-superpod", "tiers.2.fan_out=512"
# Exponential, a microsecond: an assumption where the cluster's own tiers have no jitter.
JITTER = "tiers.{}.jitter={{family: exponential, mean: 1 us}}"


@dataclass(frozen=True)
class Row:
    """One algorithm on one number of ranks; times in seconds.

    Attributes:
        ranks: in the group.
        size: bytes.
        algorithm: its name.
        protocol: its fastest.
        floor: with idle links.
        mean: under jitter.
        p99: under jitter.
        method: how they were found; see `mc.exchange.sample`.
    """

    ranks: int
    size: float
    algorithm: str
    protocol: str
    floor: float
    mean: float
    p99: float
    method: str


def study(ranks: Sequence[int] = RANKS, samples: int = 1000, most_updates: int = 1_000_000_000) -> list[Row]:
    """Every algorithm on every number of ranks, for both sizes."""
    config = load_cluster(CLUSTER, [UNITS, *(JITTER.format(index) for index in range(3))])
    cluster = build_cluster(config)
    key, rows = jax.random.key(0, impl="threefry2x32"), []
    with progress("in-network", total=len(ranks) * len(SIZES)) as advance:
        for count in ranks:
            noise = build_link_noise(config, count).prepared()
            for size in SIZES.values():
                for row, stages in plans(cluster, "all-reduce", count, size):
                    if row.algorithm not in ALGORITHMS:
                        continue
                    found = sample_times(
                        cluster, stages, size, noise, key, samples, most_updates=most_updates
                    )
                    times = found.times
                    rows.append(
                        Row(
                            count,
                            size,
                            row.algorithm,
                            row.protocol,
                            found.floor,
                            float(times.mean()),
                            float(np.quantile(times, 0.99)),
                            found.method,
                        )
                    )
                advance(1)
    return rows


def table(rows: Sequence[Row]) -> Table:
    """Mean and p99 of each algorithm, and how much slower it is than the switches."""
    shown = Table(box=None, title="All-reduce, with and without in-network reduction", title_justify="left")
    for name in (
        "ranks",
        "size",
        "algorithm",
        "protocol",
        "floor, us",
        "mean, us",
        "p99, us",
        "against it",
        "how",
    ):
        shown.add_column(name, justify="left" if name in ("algorithm", "protocol", "how") else "right")
    texts = {size: text for text, size in SIZES.items()}
    switches = {(row.ranks, row.size): row.mean for row in rows if row.algorithm == "in-network"}
    for row in rows:
        times = (f"{1e6 * time:,.1f}" for time in (row.floor, row.mean, row.p99))
        against = f"{row.mean / switches[row.ranks, row.size]:.2f} x"
        shown.add_row(
            f"{row.ranks:,}", texts[row.size], row.algorithm, row.protocol, *times, against, row.method
        )
    return shown


def plot(rows: Sequence[Row], file: Path) -> None:
    """Draws mean time against ranks, with p99 as a thin line, one panel per size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(10, 4.4), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(SIZES), squeeze=False)[0]
        for axes, (text, size) in zip(panels, SIZES.items(), strict=True):
            for name, colour in zip(ALGORITHMS, COLOURS, strict=True):
                own = [row for row in rows if row.algorithm == name and row.size == size]
                counts = [row.ranks for row in own]
                axes.plot(counts, [row.mean for row in own], color=colour, lw=2, marker="o", ms=4, label=name)
                axes.plot(counts, [row.p99 for row in own], color=colour, lw=0.8, ls=(0, (4, 2)))
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_title(f"all-reduce of {text}", loc="left", fontsize=11, fontweight="bold")
            axes.set_xlabel("ranks")
            ticks = [count for count in RANKS if count in {row.ranks for row in rows}]
            axes.set_xticks(ticks, [f"{count:,}" for count in ticks], rotation=30)
            axes.minorticks_off()
            axes.grid(color="#E5E5E5", lw=0.7)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        panels[0].set_ylabel("time, s (dashed: p99)")
        panels[0].legend(frameon=False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.in_network",
        description="All-reduce with and without in-network reduction.",
    )
    parser.add_argument("--quick", action="store_true", help="two numbers of ranks, fewer samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, times in seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        try:
            check_plot(options.plot)
        except InputError as error:
            parser.error(str(error))
    rows = study(QUICK_RANKS, 200, 20_000_000) if options.quick else study()
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=120).print(table(rows))
    if options.plot is not None:
        plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
