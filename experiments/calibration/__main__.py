"""How well calibrated clusters predict what they had not seen.

    python -m experiments.calibration [STUDY ...] [--quick] [--json] [--plot FILE]

Studies: `held-out` (each log of nccl-tests alone, every other size held out), `transfer` (fitted to up to 8 nodes, scored on
more), `recovery` (truths drawn, data simulated, intervals that should cover them). All of them by default.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.calibration.held_out import Score, scores
from experiments.calibration.logs import logs
from experiments.calibration.recovery import Coverage, coverages
from experiments.calibration.transfer import SYSTEMS, Transfer, transfers
from mc.report import progress

STUDIES = ("held-out", "transfer", "recovery")
# Medians over logs of the median and the mean error on sizes held out; the median error of a transfer.
TARGETS = (0.05, 0.09, 0.20)
_QUICK = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code, 1 where a study that ran in full misses its target."""
    parser = argparse.ArgumentParser(prog="python -m experiments.calibration", description=__doc__)
    parser.add_argument("study", nargs="*", choices=STUDIES, help="which; all by default", metavar="STUDY")
    parser.add_argument("--quick", action="store_true", help="every eighth log, fewer replications")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors on sizes held out")
    options = parser.parse_args(arguments)
    asked, found = options.study or STUDIES, logs()
    results: dict[str, Any] = {}
    if "held-out" in asked:
        own = found[:: len(found) // _QUICK] if options.quick else found
        with progress("held-out", total=len(own)) as advance:
            results["held-out"] = scores(own, advance)
    if "transfer" in asked and not options.quick:
        with progress("transfer", total=len(SYSTEMS)) as advance:
            results["transfer"] = transfers(found, advance)
    if "recovery" in asked:
        results["recovery"] = coverages(20 if options.quick else 100)
    if options.json:
        print(json.dumps({key: [asdict(row) for row in rows] for key, rows in results.items()}, indent=2))
    else:
        _show(results)
    if options.plot and "held-out" in results:
        from experiments.calibration.picture import draw

        draw(results["held-out"], options.plot)
    return 0 if options.quick or _good(results) else 1


def _good(results: dict[str, Any]) -> bool:
    held = results.get("held-out", [])
    small = not held or (
        np.median([row.median for row in held]) <= TARGETS[0]
        and np.median([row.mean for row in held]) <= TARGETS[1]
    )
    return bool(small and all(row.error <= TARGETS[2] for row in results.get("transfer", [])))


def _show(results: dict[str, Any]) -> None:
    console = Console(width=120)
    if "held-out" in results:
        console.print(_held_out(results["held-out"]))
    if "transfer" in results:
        console.print(_transfers(results["transfer"]))
    if "recovery" in results:
        console.print(_recovery(results["recovery"]))


def _held_out(rows: Sequence[Score]) -> Table:
    table = _table(
        "|predicted/measured - 1| on sizes held out",
        ("log", "sizes", "median", "mean", "line: median", "mean"),
    )
    for each in rows:
        table.add_row(
            each.system,
            str(each.sizes),
            *map(_percent, (each.median, each.mean, each.line_median, each.line_mean)),
        )
    middle = (
        float(np.median([getattr(each, name) for each in rows]))
        for name in ("median", "mean", "line_median", "line_mean")
    )
    table.add_row(f"median of {len(rows)} logs", "", *map(_percent, middle), style="bold")
    return table


def _transfers(rows: Sequence[Transfer]) -> Table:
    table = _table(
        "fitted to few nodes, median error on more",
        ("system", "fitted to", "scored on", "rows", "fit", "line", "NCCL"),
    )
    for each in rows:
        seen, unseen = (", ".join(map(str, nodes)) for nodes in (each.seen, each.unseen))
        table.add_row(
            each.system, seen, unseen, str(each.rows), *map(_percent, (each.error, each.line, each.prior))
        )
    return table


def _recovery(rows: Sequence[Coverage]) -> Table:
    table = _table("90 % intervals that hold the truth", ("what", "parameter", "replications", "covered"))
    for each in rows:
        table.add_row(each.what, each.parameter, str(each.replications), _percent(each.covered))
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
