"""What mitigations of stragglers bring on the shipped experiments, and how many workers to drop.

    python -m experiments.mitigations [--quick] [--json] [--plot FILE]

**Switches.** Each of `tailstep mitigations` on the quickstart and on a published training step: mean, p99 and useful work per
second over that of the experiment as it is, under the same noise.

**How many.** The quickstart without the k slowest of its 1,024 ranks. A step gets shorter with each that is dropped, and its
samples get fewer; in between useful work per second is largest. With ranks that are alike the first few take most of the tail.

**Published.** A request that waits for 100 servers, each of them slow once in 100 times: 63 % of requests are slow (J. Dean, L. A.
Barroso, "The tail at scale", Communications of the ACM 56, 2013). Beside it how many are where the last answers are not waited for.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from mc.config import load_experiment
from mc.delays import Lognormal, wait_for_all_but
from mc.experiment.mitigations import default_switches, try_mitigations, variants_of
from mc.report.mitigations import mitigations_json, mitigations_table
from mc.report.pictures.base import COLOURS, panel_title, picture, save

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
SHIPPED = {"quickstart": 20_000, str(CONFIGS / "llama3-405b-16k.yaml"): 200}
QUICK = {"quickstart": 1_000}
DROPPED = (1, 2, 4, 8, 16, 32, 64)
QUICK_DROPPED = (1, 8)


# Servers that a request waits for, the part of their answers that is slow, and that of requests, as published.
FAN_OUT, SLOW_ANSWERS, SLOW_REQUESTS = 100, 0.01, 0.63


@dataclass(frozen=True)
class Slow:
    """Requests that wait for all but some of their servers.

    Attributes:
        dropped: how many.
        part: of the requests that are slow, by the engine's law.
        published: the same; None where nobody has published it.
    """

    dropped: int
    part: float
    published: float | None


@dataclass(frozen=True)
class Dropped:
    """The quickstart without its slowest ranks.

    Attributes:
        ranks: that are dropped.
        mean: seconds of a step.
        p99: likewise.
        work: useful work per second, over that with all.
    """

    ranks: int
    mean: float
    p99: float
    work: float


def switches(shipped: dict[str, int]) -> list[tuple[Any, dict[str, str]]]:
    """What `tailstep mitigations` finds on shipped experiments, with so many steps of each."""
    found = []
    for name, samples in shipped.items():
        keys = [f"run.samples={samples}"]
        config = load_experiment(name, keys)
        variants, impossible = variants_of(name, keys, default_switches(config))
        reasons = {title: error.problems[0].message for title, error in impossible.items()}
        tried = try_mitigations(config, variants, skip=True)
        found.append((tried, reasons | dict(tried.impossible)))
    return found


def how_many(counts: Sequence[int], samples: int) -> list[Dropped]:
    """The quickstart without so many of its ranks."""
    keys = [f"run.samples={samples}"]
    asked = [[f"mitigations.drop_slowest={count}"] for count in counts]
    variants, _ = variants_of("quickstart", keys, asked)
    found = try_mitigations(load_experiment("quickstart", keys), variants)
    by_name = {each.name: each for each in found.tried}
    times = found.result.estimates
    rows = [Dropped(0, times.mean.value, times.p99.value, 1.0)]
    for count in counts:
        each = by_name[f"drop_slowest={count}"]
        mean, p99 = (each.found.times[name].after for name in ("mean", "p99"))
        rows.append(Dropped(count, mean, p99, each.throughput.value))
    return rows


def slow_requests() -> list[Slow]:
    """Of 100 servers, without the last of them."""
    server = Lognormal(1.0, 1.0)
    slow = server.quantile(jnp.log(SLOW_ANSWERS))
    found = []
    for dropped in range(3):
        law = wait_for_all_but(dropped, FAN_OUT, server)
        part = float(jnp.exp(law.log_survival(slow)))
        found.append(Slow(dropped, part, None if dropped else SLOW_REQUESTS))
    return found


def slow_table(rows: Sequence[Slow]) -> Table:
    """Published and predicted."""
    shown = Table(box=None, pad_edge=False, header_style="bold", title="slow requests")
    for heading in ("not waited for", "predicted", "published"):
        shown.add_column(heading, justify="right")
    for row in rows:
        published = "" if row.published is None else f"{row.published:.0%}"
        shown.add_row(str(row.dropped), f"{row.part:.1%}", published)
    return shown


def table(rows: Sequence[Dropped]) -> Table:
    """How many to drop."""
    shown = Table(box=None, pad_edge=False, header_style="bold", title="quickstart, ranks dropped")
    for heading in ("dropped", "mean (ms)", "p99 (ms)", "useful work/s"):
        shown.add_column(heading, justify="right")
    for row in rows:
        shown.add_row(str(row.ranks), f"{1e3 * row.mean:.2f}", f"{1e3 * row.p99:.2f}", f"{row.work:.3f}")
    return shown


def plot(file: Path, rows: Sequence[Dropped]) -> None:
    """Draws the tail and useful work against how many are dropped."""
    ranks = [row.ranks for row in rows]

    def tail(axes: Any) -> None:
        for place, name in enumerate(("mean", "p99")):
            axes.plot(
                ranks, [1e3 * getattr(row, name) for row in rows], "o-", color=COLOURS[place], label=name
            )
        axes.set_ylabel("step (ms)")
        axes.legend(frameon=False)
        panel_title(axes, "a step")

    def work(axes: Any) -> None:
        axes.plot(ranks, [row.work for row in rows], "o-", color=COLOURS[2])
        axes.set_ylabel("useful work per second, over that with all")
        panel_title(axes, "what gets done")

    def both(panel: Any) -> Any:
        def drawn(axes: Any) -> None:
            panel(axes)
            axes.set_xscale("symlog", linthresh=1)
            axes.set_xticks(ranks, [str(each) for each in ranks])
            axes.set_xlabel("ranks dropped of 1,024")

        return drawn

    save(file, picture([both(tail), both(work)]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mitigations", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps, of the quickstart alone")
    parser.add_argument("--json", action="store_true", help="print rows for a program")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw how many to drop")
    asked = parser.parse_args(arguments)
    found = switches(QUICK if asked.quick else SHIPPED)
    rows = how_many(QUICK_DROPPED if asked.quick else DROPPED, 1_000 if asked.quick else 20_000)
    if asked.plot is not None:
        plot(asked.plot, rows)
    if asked.json:
        plain = [mitigations_json(each, reasons) for each, reasons in found]
        slow = [asdict(row) for row in slow_requests()]
        print(
            json.dumps(
                {"switches": plain, "dropped": [asdict(row) for row in rows], "published": slow}, indent=2
            )
        )
        return 0
    console = Console()
    for each, reasons in found:
        shown = mitigations_table(each, reasons)
        console.width = max(console.width, Console(width=500).measure(shown).maximum)
        console.print(shown, "")
    console.print(table(rows), "")
    console.print(slow_table(slow_requests()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
