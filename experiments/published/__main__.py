"""Published training steps against predicted ones, with one set of efficiencies per generation of chips.

    python -m experiments.published [TABLE…] [--rows] [--quick] [--json] [--plot FILE] [--fit]

Each table is split in two at random, by a fixed seed: efficiencies of the catalog were fitted to one half and are scored
on the other. `--fit` fits them anew (some minutes) and prints them as `efficiencies.yaml` has them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from experiments.published import tables
from experiments.published.fit import FITTED_FORMATS, GENERATIONS, HELD_OUT, fit
from experiments.published.predict import Case, cases
from experiments.published.report import (
    LACKS,
    OTHERS,
    WANTED,
    Prediction,
    Score,
    as_json,
    predictions,
    scores,
)

# Of the largest table, every so many rows where it is to go quickly.
QUICK, LARGE = 24, 200
_TIMES = {"kernel": 1e-6, "launch": 1e-6, "collective_launch": 1e-6, "pass_launch": 1e-3, "wait": 1e-6}


def names() -> list[str]:
    """Tables, oldest chips first."""
    order = [
        "megatron_sc21",
        "korthikanti",
        "vtrain",
        "megascale",
        "bloom",
        "llama3",
        "nemo",
        "dgxc",
        "bridge",
    ]
    found = sorted(path.stem for path in tables.DATA.glob("*.csv"))
    return sorted(found, key=lambda name: next(i for i, each in enumerate(order) if name.startswith(each)))


def load(chosen: Sequence[str], *, quick: bool = False) -> list[Case]:
    """The rows of tables."""
    rows = []
    for name in chosen:
        found = tables.rows(name)
        rows += found[::QUICK] if quick and len(found) > LARGE else found
    return cases(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    known = names()
    parser = argparse.ArgumentParser(
        prog="python -m experiments.published",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", choices=[*known, []], help=f"of {', '.join(known)}"
    )
    parser.add_argument("--quick", action="store_true", help=f"of large tables each {QUICK}th row")
    parser.add_argument("--rows", action="store_true", help="print every row")
    parser.add_argument("--json", action="store_true", help="print tables and rows as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw predicted over measured, by table")
    parser.add_argument("--fit", action="store_true", help="fit efficiencies anew and print them")
    options = parser.parse_args(arguments)
    chosen = load(options.tables or known, quick=options.quick)
    if options.fit:
        return _fit(chosen)
    found = predictions(chosen, frozenset(HELD_OUT))
    scored = scores(found)
    if options.json:
        print(json.dumps(as_json(found, scored), indent=2))
    else:
        console = Console(width=130)
        if options.rows:
            console.print(_rows(found))
        console.print(_scores(scored))
        for name, reason in (HELD_OUT | LACKS).items():
            if any(each.table.startswith(name) for each in scored):
                print(f"{name}: {reason}")
    if options.plot:
        from experiments.published.picture import draw

        draw(found, options.plot)
    return 0


def _scores(scored: Sequence[Score]) -> Table:
    title = f"error of predicted steps; wanted: at most {100 * WANTED:.0f} % in the mean of rows that were not fitted"
    shown = Table(title=title, title_justify="left", box=None)
    shown.add_column("table", no_wrap=True)
    shown.add_column("chips")
    for heading in ("rows", "fitted", "mean, fitted", "mean, not fitted", "largest", "bias", "too quick"):
        shown.add_column(heading, justify="right")
    shown.add_column("others")
    for each in scored:
        means = ("-" if part is None else f"{100 * part:.1f} %" for part in (each.fitted, each.held_out))
        shown.add_row(
            each.table,
            each.chips,
            str(each.rows),
            str(each.fitted_rows),
            *means,
            f"{100 * each.largest:.0f} %",
            f"{100 * each.bias:+.1f} %",
            f"{100 * each.too_quick:.0f} %",
            OTHERS.get(each.table, ""),
            style=None if each.met else "yellow",
        )
    return shown


def _rows(found: Sequence[Prediction]) -> Table:
    shown = Table(box=None)
    for heading in ("table", "row", "chip"):
        shown.add_column(heading)
    for heading in ("chips", "measured", "predicted", "error"):
        shown.add_column(heading, justify="right")
    shown.add_column("")
    for each in found:
        numbers = (f"{each.measured:.4g} s", f"{each.predicted:.4g} s", f"{100 * each.error:+.1f} %")
        name = each.row if len(each.row) < 48 else each.row[:47] + "…"
        shown.add_row(each.table, name, each.chip, str(each.gpus), *numbers, "fitted" if each.fitted else "")
    return shown


def _fit(chosen: Sequence[Case]) -> int:
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("generations", total=len(GENERATIONS))
        for name, generation in GENERATIONS.items():
            rows = [
                case
                for case in chosen
                if case.row.chip in generation.chips and case.row.fitted and case.row.table not in HELD_OUT
            ]
            if rows:
                print(f"  - id: {name}  # {len(rows)} rows")
                for line in _as_yaml(fit(generation, rows)):
                    print(f"    {line}")
            progress.advance(task)
    return 0


def _as_yaml(values: dict[str, float]) -> list[str]:
    rates = ", ".join(f"{name}: {values[name]:.3f}" for name in FITTED_FORMATS if name in values)
    lines = [f"matmul: {{{rates}}}"]
    for name, value in values.items():
        if name in FITTED_FORMATS:
            continue
        unit = _TIMES.get(name)
        if unit is not None:
            lines.append(f"{name}: {value / unit:.3g} {'us' if unit < 1e-3 else 'ms'}")
        elif name == "step":
            lines.append(f"{name}: {1e3 * value:.3g} ms")
        elif value > 1e5:
            lines.append(f"{name}: {float(f'{value:.3g}'):.0f}")
        else:
            lines.append(f"{name}: {value:.3g}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
