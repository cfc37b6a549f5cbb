"""How well calibrated clusters predict what they had not seen.

    python -m experiments.calibration [STUDY ...] [--quick] [--json] [--plot FILE] [--data DIR]

Studies, all of them by default:

- `single-node`: boxes of 4 or 8, fitted to half of machines and sizes;
- `noise`: the slowest of 8 nodes from runs on 4;
- `transfer`: fitted to up to 8 nodes, scored on more;
- `held-out`: each log of nccl-tests alone, every other size held out;
- `slow-chips`: the same for step times of which slow chips are the end in every run;
- `recovery`: truths drawn, data simulated, intervals that should cover them;
- `gradients`: evaluations until a fit is near, with gradients and without.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from experiments.calibration import machines, noise
from experiments.calibration.gradients import costs
from experiments.calibration.held_out import scores
from experiments.calibration.logs import logs
from experiments.calibration.recovery import coverages
from experiments.calibration.report import TABLES
from experiments.calibration.single_node import box_scores
from experiments.calibration.slow_chips import VARIANTS, slow_chips
from experiments.calibration.transfer import SYSTEMS, transfers
from mc.report import progress

# Medians over logs of the median and the mean error on sizes held out; the median error of a transfer.
TARGETS = (0.05, 0.09, 0.20)
_QUICK_LOGS, _QUICK_MACHINES = 6, 2
_logs = cache(logs)


def _single_node(*, quick: bool) -> list[Any]:
    chosen = machines.MACHINES[1 : 1 + _QUICK_MACHINES] if quick else machines.MACHINES
    with progress("single-node", total=len(chosen)) as advance:
        return box_scores(advance, chosen)


def _noise(*, quick: bool) -> list[Any]:
    with progress("noise", total=len(noise.COLLECTIVES)) as advance:
        return noise.forecasts(advance, quick=quick)


def _transfer(*, quick: bool) -> list[Any]:
    systems = SYSTEMS[:1] if quick else SYSTEMS
    with progress("transfer", total=len(systems)) as advance:
        return transfers(_logs(), advance, systems)


def _held_out(*, quick: bool) -> list[Any]:
    own = _logs()[:: len(_logs()) // _QUICK_LOGS] if quick else _logs()
    with progress("held-out", total=len(own)) as advance:
        return scores(own, advance)


def _recovery(*, quick: bool) -> list[Any]:
    return coverages(20 if quick else 100)


def _slow_chips(*, quick: bool) -> list[Any]:
    # Each data set is a fit that is compiled anew: minutes, not seconds.
    asked = [(VARIANTS[0], 1)] if quick else [(VARIANTS[0], 24), *((each, 8) for each in VARIANTS[1:])]
    with progress("slow-chips", total=sum(count for _, count in asked)) as advance:
        return [row for each, count in asked for row in slow_chips(each, count, advance)]


def _gradients(*, quick: bool) -> list[Any]:
    with progress("gradients", total=2) as advance:
        return costs(advance, quick=quick)


STUDIES: dict[str, Callable[..., list[Any]]] = {
    "single-node": _single_node,
    "noise": _noise,
    "transfer": _transfer,
    "held-out": _held_out,
    "slow-chips": _slow_chips,
    "recovery": _recovery,
    "gradients": _gradients,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code, 1 where a study that ran in full misses its target."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", nargs="*", help=f"of {', '.join(STUDIES)}; all by default", metavar="STUDY")
    parser.add_argument("--quick", action="store_true", help="few logs, machines and replications")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors on sizes held out")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="take the figures anew from the sources' files in a folder"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.study if name not in STUDIES]
    if unknown:
        parser.error(f"expected studies of {', '.join(STUDIES)}; got {', '.join(unknown)}")
    if options.data:
        extract(options.data)
    results = {name: STUDIES[name](quick=options.quick) for name in options.study or STUDIES}
    if options.json:
        print(json.dumps({key: [asdict(row) for row in rows] for key, rows in results.items()}, indent=2))
    else:
        console = Console(width=130)
        for key, rows in results.items():
            console.print(TABLES[key](rows))
    if options.plot and "held-out" in results:
        from experiments.calibration.picture import draw

        draw(results["held-out"], options.plot)
    return 0 if options.quick or _good(results) else 1


def extract(folder: Path) -> None:
    """Writes the figures that the studies carry, from the files of their sources."""
    for found in folder.rglob(machines.RAW):
        machines.extract(found)
    if next(folder.rglob(noise.RAW), None) is not None:
        noise.extract(folder)


def _good(results: dict[str, Any]) -> bool:
    held = results.get("held-out", [])
    small = not held or (
        np.median([row.median for row in held]) <= TARGETS[0]
        and np.median([row.mean for row in held]) <= TARGETS[1]
    )
    return bool(small and all(row.error <= TARGETS[2] for row in results.get("transfer", [])))


if __name__ == "__main__":
    sys.exit(main())
