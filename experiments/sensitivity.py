"""Elasticities by one gradient, against differences of independent runs.

    python -m experiments.sensitivity [--quick] [--json]

The quickstart on 8 to 65,536 ranks, and a small transformer on 8. `tailstep sensitivity` differentiates the draws; here every
figure is also made 2 % smaller and larger, the experiment run on each side under the same random numbers, and the
elasticity taken from the two means and the two p99.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.slowest import CLUSTER
from mc.config import ExperimentConfig, load_experiment
from mc.config.figures import figure_at, with_figures
from mc.experiment import run
from mc.report import progress
from mc.sensitivity import sensitivity

RANKS, QUICK_RANKS = (8, 256, 4096, 65_536), (8, 1024)
SAMPLES, QUICK_SAMPLES = 100_000, 20_000
REALISATIONS = 200
STEP = 0.02
FIGURES = (
    "model.compute.efficiency",
    "cluster.tiers.node.link.bandwidth",
    "cluster.noise.spread.sigma",
    "cluster.noise.pauses.delay.mean",
)
TRANSFORMER = Path(__file__).parent / "data" / "sensitivity.yaml"
TRANSFORMER_SAMPLES, QUICK_TRANSFORMER_SAMPLES = 1000, 50
TRANSFORMER_FIGURES = (
    "cluster.chip.peak.bf16",
    "cluster.tiers.pod.link.bandwidth",
    "cluster.noise.spread.sigma",
    "cluster.noise.transient.0.pauses.delay.mean",
)


@dataclass(frozen=True)
class Row:
    """One figure of one experiment.

    Attributes:
        experiment: its name and size.
        figure: path.
        number: `mean` or `p99`.
        gradient: elasticity.
        low: end of its 95 % interval.
        high: likewise.
        differences: of two runs.
    """

    experiment: str
    figure: str
    number: str
    gradient: float
    low: float
    high: float
    differences: float


def barrier(ranks: int, *, samples: int = SAMPLES, figures: Sequence[str] = FIGURES) -> list[Row]:
    """The quickstart on a number of ranks."""
    sampling = [f"run.samples={samples}", f"run.realisations={REALISATIONS}", "run.method=exact"]
    config = load_experiment("quickstart", [CLUSTER, f"plan.ranks={ranks}", *sampling])
    return rows(f"quickstart, {ranks:,} ranks", config, figures)


def transformer(
    *, samples: int = TRANSFORMER_SAMPLES, figures: Sequence[str] = TRANSFORMER_FIGURES
) -> list[Row]:
    """Two pipelines of two stages each, on 8 ranks."""
    config = load_experiment(TRANSFORMER, [f"run.samples={samples}"])
    return rows("transformer, 8 ranks", config, figures)


def rows(name: str, config: ExperimentConfig, figures: Sequence[str]) -> list[Row]:
    """Both ways, of every figure that matters."""
    found = sensitivity(config, config.run.samples, only=figures)
    each = {one.path: one for one in found.elasticities}
    result = []
    for path in figures:
        if path not in each:
            continue
        value = figure_at(config, path)
        less, more = (
            run(with_figures(config, {path: value * (1 + sign * STEP)})).estimates for sign in (-1, 1)
        )
        for number in ("mean", "p99"):
            ends = getattr(less, number).value, getattr(more, number).value
            differences = math.log(ends[1] / ends[0]) / math.log((1 + STEP) / (1 - STEP))
            one = each[path].of(number)
            result.append(Row(name, path, number, one.value, one.low, one.high, differences))
    return result


def table(found: Sequence[Row]) -> Table:
    """For people."""
    shown = Table(title="elasticities: % of the step for 1 % of the figure", title_justify="left", box=None)
    for place, heading in enumerate(
        ("experiment", "figure", "number", "gradient", "95 % interval", "differences")
    ):
        shown.add_column(heading, justify="left" if place < 3 else "right")
    for row in found:
        ends = f"{row.low:+.4f} .. {row.high:+.4f}"
        shown.add_row(
            row.experiment, row.figure, row.number, f"{row.gradient:+.4f}", ends, f"{row.differences:+.4f}"
        )
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.sensitivity", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes, fewer steps")
    parser.add_argument("--json", action="store_true", help="print a list of rows as JSON")
    options = parser.parse_args(arguments)
    sizes = QUICK_RANKS if options.quick else RANKS
    found = []
    with progress("sensitivity", total=len(sizes) + 1) as advance:
        for ranks in sizes:
            found += barrier(ranks, samples=QUICK_SAMPLES if options.quick else SAMPLES)
            advance(1)
        found += transformer(samples=QUICK_TRANSFORMER_SAMPLES if options.quick else TRANSFORMER_SAMPLES)
        advance(1)
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
    else:
        Console(width=140).print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
