"""Which all-reduce wins: a map over ranks, sizes and jitter, once by the mean and once by the p99.

    python -m experiments.winners [--quick] [--json] [--plot FILE]

Plain links (two tiers, no protocols, no reduction in switches), so that what changes the winner is how an
algorithm adds up delays. A ring waits for its neighbour alone, but thousands of times; halving/doubling and
trees wait few times, each time for a partner who has waited for his. Jitter is a generalised Pareto law whose tail was
read off one-way latencies between two cloud machines with InfiniBand (D. De Sensi et al., "Noise in the
Clouds", POMACS 6(3) 2022: median 0.08 us above the least, p99 0.84 us, p99.9 2.9 us, p99.99 12 us), as it is
and many times larger.
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

from mc.config.names import OBJECTIVES as EVERY_OBJECTIVE
from mc.config.names import Objective
from mc.delays import GeneralisedPareto
from mc.errors import InputError
from mc.exchange import Way, compare
from mc.fabric import Cluster, Link, LinkNoise, Tier
from mc.report import progress
from mc.report.pictures.axes import size_text
from mc.report.pictures.base import check_plot

RANKS = (8, 16, 64, 128, 256, 512)
SIZES = tuple(1024.0 * 4**power for power in range(11))
JITTER = {"measured": 1.0, "30 times": 30.0, "1,000 times": 1000.0}
QUICK_RANKS, QUICK_SIZES, QUICK_JITTER = (8, 16), SIZES[::5], {"measured": 1.0, "1,000 times": 1000.0}
SCALE, SHAPE = 47e-9, 0.49
OBJECTIVES: tuple[Objective, ...] = ("mean", "p99")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442", "#222222")


@dataclass(frozen=True)
class Cell:
    """The winners of one cell, and what is lost by choosing by the other objective.

    Attributes:
        jitter: how large it is.
        ranks: in the group.
        size: bytes.
        floor: the algorithm that is fastest with idle links.
        mean: that with the least mean.
        p99: that with the least p99.
        lost: p99 of the winner by the floor, over the least p99, minus 1.
    """

    jitter: str
    ranks: int
    size: float
    floor: str
    mean: str
    p99: str
    lost: float


def cluster() -> Cluster:
    """Nodes of 8 at 450 GB/s and 1 us, joined at 50 GB/s and 4 us."""
    return Cluster(
        "two tiers", (Tier("node", Link(1e-6, 450e9), 8), Tier("pod", Link(4e-6, 50e9), max(RANKS) // 8))
    )


def study(
    ranks: Sequence[int] = RANKS,
    sizes: Sequence[float] = SIZES,
    jitter: dict[str, float] = JITTER,
    samples: int = 400,
) -> list[Cell]:
    """Every cell of the map."""
    fabric, key, cells = cluster(), jax.random.key(0, impl="threefry2x32"), []
    with progress("winners", total=len(ranks) * len(sizes) * len(jitter)) as advance:
        # Ranks outermost: sizes and jitter share what is compiled for a number of ranks.
        for count in ranks:
            for name, factor in jitter.items():
                law = GeneralisedPareto(SCALE * factor, SHAPE)
                noise = LinkNoise((law, law), (None, None))
                for size in sizes:
                    ways = compare(
                        fabric,
                        "all-reduce",
                        count,
                        size,
                        noise,
                        key,
                        samples=samples,
                        most_updates=40_000_000,
                    )
                    best = {goal: _best(ways, goal) for goal in EVERY_OBJECTIVE}
                    lost = best["floor"].score("p99") / best["p99"].score("p99") - 1
                    names = {goal: way.row.algorithm for goal, way in best.items()}
                    cells.append(Cell(name, count, size, **names, lost=lost))
                    advance(1)
    return cells


def _best(ways: Sequence[Way], objective: Objective) -> Way:
    return min(ways, key=lambda way: way.score(objective))


def table(cells: Sequence[Cell]) -> Table:
    """Cells in which the objectives disagree, and how many do not."""
    apart = [cell for cell in cells if len({cell.floor, cell.mean, cell.p99}) > 1]
    title = f"Where the objectives disagree: {len(apart)} of {len(cells)} cells"
    shown = Table(box=None, title=title, title_justify="left")
    for name in (
        "jitter",
        "ranks",
        "size",
        "by floor",
        "by mean",
        "by p99",
        "p99 lost by the floor's choice",
    ):
        shown.add_column(name, justify="right" if name in ("ranks", "size") or "lost" in name else "left")
    for cell in apart:
        shown.add_row(
            cell.jitter,
            f"{cell.ranks:,}",
            size_text(cell.size),
            cell.floor,
            cell.mean,
            cell.p99,
            f"{100 * cell.lost:.1f} %",
        )
    return shown


def plot(cells: Sequence[Cell], file: Path) -> None:
    """Draws the maps: a row for each objective, a column for each jitter."""
    import matplotlib as mpl
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    jitters = list(dict.fromkeys(cell.jitter for cell in cells))
    ranks = sorted({cell.ranks for cell in cells})
    sizes = sorted({cell.size for cell in cells})
    names = sorted({getattr(cell, goal) for cell in cells for goal in OBJECTIVES})
    colours = dict(zip(names, COLOURS, strict=False))
    style: Any = {"font.family": "DejaVu Sans", "font.size": 9, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(3.4 * len(jitters) + 1.6, 5.6), facecolor="white", layout="constrained")
        panels = figure.subplots(len(OBJECTIVES), len(jitters), squeeze=False, sharex=True, sharey=True)
        for row, goal in enumerate(OBJECTIVES):
            for column, jitter in enumerate(jitters):
                axes = panels[row][column]
                image = np.ones((len(ranks), len(sizes), 4))
                for cell in cells:
                    if cell.jitter == jitter:
                        place = ranks.index(cell.ranks), sizes.index(cell.size)
                        image[place] = to_rgba(colours[getattr(cell, goal)])
                axes.imshow(image, origin="lower", aspect="auto", interpolation="nearest")
                axes.set_title(f"least {goal}, jitter {jitter}", loc="left", fontsize=9.5, fontweight="bold")
                axes.set_xticks(
                    range(0, len(sizes), 2), [size_text(size) for size in sizes[::2]], rotation=45
                )
                axes.set_yticks(range(len(ranks)), [f"{count:,}" for count in ranks])
            panels[row][0].set_ylabel("ranks")
        figure.legend(
            handles=[Patch(color=colours[name], label=name) for name in names],
            loc="outside lower center",
            ncols=min(len(names), 5),
            frameon=False,
        )
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study, prints it and draws it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.winners", description="Which all-reduce wins."
    )
    parser.add_argument("--quick", action="store_true", help="a few cells, fewer samples")
    parser.add_argument("--json", action="store_true", help="print cells as JSON, sizes in bytes")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        try:
            check_plot(options.plot)
        except InputError as error:
            parser.error(str(error))
    cells = study(QUICK_RANKS, QUICK_SIZES, QUICK_JITTER, 200) if options.quick else study()
    if options.json:
        print(json.dumps([asdict(cell) for cell in cells], indent=2))
    else:
        Console(width=110).print(table(cells))
    if options.plot is not None:
        plot(cells, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
