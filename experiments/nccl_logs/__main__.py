"""How far NCCL's own constants, uncalibrated, are from what nccl-tests measured.

    python -m experiments.nccl_logs [LOGS] [--json] [--plot FILE] [--write]

Without LOGS the figures in `data/` are compared; with the folder of logs it is parsed anew, and `--write`
replaces those figures.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.nccl_logs import data
from experiments.nccl_logs.compare import Curve, errors
from experiments.nccl_logs.systems import LEFT_OUT

TARGET = 0.35
# Where messages begin to be bandwidth and no longer latency, roughly.
SMALL, LARGE = 64 * 2**10, 64 * 2**20


@dataclass(frozen=True)
class Row:
    """The errors of one system: |predicted/measured − 1|, medians over its rows.

    Attributes:
        system: its name, `all` for all together.
        logs: parts of logs.
        rows: sizes measured.
        error: the median error.
        bias: the median of predicted/measured − 1, so below 0 where predictions are too quick.
        small: median error up to 64 KiB; None if nothing was measured there.
        middle: between.
        large: from 64 MiB on.
    """

    system: str
    logs: int
    rows: int
    error: float
    bias: float
    small: float | None
    middle: float | None
    large: float | None


def table(curves: Sequence[Curve]) -> list[Row]:
    """One row per system, in the order of the curves, and one for all."""
    names = list(dict.fromkeys(each.system.name for each in curves))
    groups = [[each for each in curves if each.system.name == name] for name in names]
    return [_row("all", curves), *(_row(name, group) for name, group in zip(names, groups, strict=True))]


def _row(name: str, curves: Sequence[Curve]) -> Row:
    found = errors(curves)
    sizes = np.concatenate([each.sizes for each in curves])

    def median(where: np.ndarray) -> float | None:
        return float(np.median(np.abs(found[where]))) if where.any() else None

    small, large = sizes <= SMALL, sizes >= LARGE
    return Row(
        name,
        len(curves),
        len(found),
        float(np.median(np.abs(found))),
        float(np.median(found)),
        median(small),
        median(~small & ~large),
        median(large),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code, 1 where the median error is above the target."""
    parser = argparse.ArgumentParser(prog="python -m experiments.nccl_logs", description=__doc__)
    parser.add_argument("logs", nargs="?", type=Path, help="a folder of logs to parse")
    parser.add_argument("--quick", action="store_true", help="the same: it takes a minute")
    parser.add_argument("--json", action="store_true", help="print a list of rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw predicted/measured against size")
    parser.add_argument("--write", action="store_true", help="keep the figures of the parsed logs")
    options = parser.parse_args(arguments)
    curves = data.from_logs(options.logs) if options.logs else data.read()
    if options.write:
        data.write(curves, data.DATA)
    found = table(curves)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        Console(width=110).print(_shown(found))
        for log, reason in LEFT_OUT.items():
            print(f"left out: {log}: {reason}")
    if options.plot:
        from experiments.nccl_logs.picture import draw

        draw(curves, options.plot)
    return 0 if found[0].error <= TARGET else 1


def _shown(found: Sequence[Row]) -> Table:
    shown = Table(title="|predicted/measured - 1|, medians; nothing fitted", title_justify="left", box=None)
    shown.add_column("system")
    for heading in ("logs", "rows", "error", "bias", "up to 64 KiB", "between", "from 64 MiB"):
        shown.add_column(heading, justify="right")
    for each in found:
        parts = (each.error, each.bias, each.small, each.middle, each.large)
        texts = ["-" if part is None else f"{100 * part:.0f} %" for part in parts]
        shown.add_row(
            each.system, str(each.logs), str(each.rows), *texts, style="bold" if each is found[0] else None
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
