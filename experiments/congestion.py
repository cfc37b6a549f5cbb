"""Congestion that grows with the cluster, and congestion that lasts.

    python -m experiments.congestion [--quick] [--json] [--plot FILE]

**Growth.** 100 ms of compute is divided over n chips, which then add up 10 MB by a ring at 100 GB/s, nodes of eight
chips finding their uplink busy (4× slower) in 1 % of the steps. Three curves: no congestion; 1 % whatever the size;
and a load whose odds grow by e^0.5 with each doubling beyond 64 chips. More nodes are more likely to have a busy one
among them, so even a fixed load costs more and more; a growing one bends the speed-up down earlier.

**Memory.** On 1,024 chips the same 1 % either comes and goes with each step, or in episodes of 50 steps. Step
by step both have one law. What differs is a hundred steps in a row: episodes do not average out. The interval of the
mean says so, because it takes whole sequences, not steps, as independent.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from mc.config import ExperimentConfig
from mc.experiment import run

CHIPS_PER_NODE = 8
WORK, TRANSFER_TIME, BUSY, SLOWDOWN = 0.1, 1e-4, 0.01, 4.0
GROWTH, AT_RANKS = 0.5, 64
SIZES = tuple(2**k for k in range(4, 15))
QUICK_SIZES = (16, 256, 4096)
SAMPLES, QUICK_SAMPLES = 100_000, 5_000
EPISODE, IN_A_ROW, CHIPS_OF_MEMORY = 50, 100, 1024
REALISATIONS = 200


@dataclass(frozen=True)
class Size:
    """Speed-ups over one chip.

    Attributes:
        ranks: how many chips.
        quiet: without congestion.
        steady: with one load whatever the size.
        growing: with a load that grows.
        busy: probability that a link is busy under the growing load.
    """

    ranks: int
    quiet: float
    steady: float
    growing: float
    busy: float


@dataclass(frozen=True)
class Memory:
    """What episodes change.

    Attributes:
        episode: mean length in steps; 1 where links forget.
        mean: mean step, seconds.
        p99: 99 % quantile of a step, seconds.
        p99_in_a_row: 99 % quantile of the mean of 100 successive steps, seconds.
        width: of the interval of the mean, over what independent steps would give.
    """

    episode: float
    mean: float
    p99: float
    p99_in_a_row: float
    width: float


def experiment(ranks: int, samples: int, congestion: dict[str, Any] | None) -> ExperimentConfig:
    """The step on `ranks` chips."""
    link = {"bandwidth": "100 GB/s", "duplex": "each", "latency": "0 us"}
    pod = {"name": "pod", "link": link, "fan_out": ranks // CHIPS_PER_NODE}
    if congestion is not None:
        pod["congestion"] = {"shared_by": "node", **congestion}
    tiers = [{"name": "node", "link": link, "fan_out": CHIPS_PER_NODE}, pod]
    return ExperimentConfig.model_validate(
        {
            "name": "congestion",
            "cluster": {"name": "nodes", "chip": {"peak": {"bf16": "1 PFLOP/s"}}, "tiers": tiers},
            "model": {
                "name": "a fixed amount of work",
                "compute": {"time": f"{WORK / ranks!r} s"},
                "exchange": {"collective": "all-reduce", "size": "10 MB"},
            },
            "plan": {"ranks": "all", "algorithm": "ring"},
            "run": {"samples": samples, "realisations": REALISATIONS},
        }
    )


def load(holding: float | None = None) -> dict[str, Any]:
    """Links that are busy in 1 % of the steps, in episodes of so many."""
    busy: dict[str, Any] = {"name": "busy", "probability": BUSY, "slowdown": SLOWDOWN}
    if holding is not None:
        busy["holding"] = holding
    return {"states": [{"name": "idle", "probability": 1 - BUSY}, busy]}


def busy_probability(ranks: int) -> float:
    """Of a link, under the growing load."""
    odds = BUSY / (1 - BUSY) * math.exp(GROWTH * math.log2(ranks / AT_RANKS))
    return odds / (1 + odds)


def sizes(ranks: Sequence[int] = SIZES, samples: int = SAMPLES) -> list[Size]:
    """The speed-up curves."""
    growing = {**load(), "growth": {"per_doubling": GROWTH, "at_ranks": AT_RANKS}}

    def speed_up(count: int, congestion: dict[str, Any] | None) -> float:
        steps = run(experiment(count, 1 if congestion is None else samples, congestion)).samples
        return float(WORK / steps.mean())

    return [
        Size(n, speed_up(n, None), speed_up(n, load()), speed_up(n, growing), busy_probability(n))
        for n in ranks
    ]


def memories(samples: int = SAMPLES) -> list[Memory]:
    """The same load, forgotten after each step and in episodes."""
    return [_memory(holding, samples) for holding in (None, float(EPISODE))]


def _memory(holding: float | None, samples: int) -> Memory:
    result = run(experiment(CHIPS_OF_MEMORY, samples, load(holding)))
    steps, mean = result.samples, result.estimates.mean
    in_a_row = _in_rows(steps)
    independent = 2 * 1.96 * steps.std() / math.sqrt(steps.size)
    return Memory(
        1.0 if holding is None else holding,
        mean.value,
        result.estimates.p99.value,
        float(np.quantile(in_a_row, 0.99)),
        (mean.high - mean.low) / independent,
    )


def _in_rows(steps: NDArray[np.floating]) -> NDArray[np.floating]:
    """Means over successive steps, none of which spans two realisations."""
    length = min(IN_A_ROW, steps.shape[1])
    whole = steps.shape[1] // length
    return steps[:, : whole * length].reshape(-1, length).mean(axis=1)


def tables(found: Sequence[Size], lasting: Sequence[Memory]) -> tuple[Table, Table]:
    """One line per size, one per length of an episode."""
    first = Table(title="Speed-up over one chip", title_justify="left", box=None, pad_edge=False)
    for heading in ("ranks", "quiet", "1 % busy", "growing load", "busy"):
        first.add_column(heading, justify="right")
    for row in found:
        ups = (f"{value:.1f}" for value in (row.quiet, row.steady, row.growing))
        first.add_row(f"{row.ranks:,}", *ups, f"{100 * row.busy:.2f} %")
    second = Table(title="Memory, 1,024 chips, us", title_justify="left", box=None, pad_edge=False)
    for heading in ("episode, steps", "mean", "p99", "p99 of 100 in a row", "interval, x independent"):
        second.add_column(heading, justify="right")
    for each in lasting:
        times = (f"{1e6 * value:.1f}" for value in (each.mean, each.p99, each.p99_in_a_row))
        second.add_row(f"{each.episode:g}", *times, f"{each.width:.1f}")
    return first, second


def plot(rows: Sequence[Size], file: Path) -> None:
    """Draws the curves with matplotlib, in the format that the suffix of `file` names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        ranks = [row.ranks for row in rows]
        for field, colour, label in (
            ("quiet", "#666666", "no congestion"),
            ("steady", "#005A91", "1 % of the links busy"),
            ("growing", "#B34700", "load that grows"),
        ):
            axes.plot(ranks, [getattr(row, field) for row in rows], "o-", color=colour, ms=3, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("chips")
        axes.set_title("Speed-up over one chip", loc="left", fontsize=11, fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.congestion",
        description="Congestion that grows, and congestion that lasts.",
    )
    parser.add_argument("--quick", action="store_true", help="three sizes, fewer samples")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, times in seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    samples = QUICK_SAMPLES if options.quick else SAMPLES
    found = sizes(QUICK_SIZES if options.quick else SIZES, samples)
    lasting = memories(max(samples, REALISATIONS * IN_A_ROW))
    if options.json:
        print(
            json.dumps(
                {"sizes": [asdict(row) for row in found], "memory": [asdict(row) for row in lasting]},
                indent=2,
            )
        )
    else:
        console = Console(width=100)
        for each in tables(found, lasting):
            console.print(each)
    if options.plot is not None:
        plot(found, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
