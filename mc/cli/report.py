"""`tailstep report`: a folder of results as one page of HTML."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mc.errors import InputError

if TYPE_CHECKING:
    from mc.report.html.page import Page

RUN, SWEEP, CALIBRATION = "run", "sweep", "calibration"
_NAME, _NAME_OF_TWO = "report.html", "comparison.html"


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="The folder of a run, a sweep or a calibration, as their --out or --results kept it.",
            show_default=False,
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder of another run, to compare.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write it (.html); into the folder without.", show_default=False
        ),
    ] = None,
    *,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Only what the folder holds; computes nothing, and needs no JAX."),
    ] = False,
    elasticities: Annotated[
        bool,
        typer.Option(
            "--elasticities",
            help="Also what 1 % more of each figure does to a run's step; takes about a minute.",
        ),
    ] = False,
) -> None:
    """Write a report: one HTML file with pictures and tables, without scripts and without network, light and dark.

    A run's distribution and waterfall, and what follows from its configuration (more ranks, faster chips, the fastest algorithm;
    of a plan the network roofline and a step in time); a sweep's curves and front; a calibration's fit; what two runs differ in.
    Each with its configuration, where it came from, and how far to trust it.
    """
    _check(folder, other, out)
    if stored and elasticities:
        raise InputError("--elasticities: expected without `--stored`, since they have to be computed")
    target = out or (folder / _NAME if other is None else other / _NAME_OF_TWO)
    from mc.report.html.page import render
    from mc.results.atomic import write_atomically

    words = [
        "tailstep",
        "report",
        str(folder),
        *([] if other is None else [str(other)]),
        *(["--stored"] if stored else []),
        *(["--elasticities"] if elasticities else []),
    ]
    computed = None if stored else elasticities
    text = render(_page(folder, other, shlex.join(words), elasticities=computed))
    write_atomically(target, text)
    print(f"wrote {target} ({len(text.encode()) / 1e3:,.0f} kB)", file=sys.stderr)


def _check(folder: Path, other: Path | None, out: Path | None) -> None:
    for name, package in (("matplotlib", "matplotlib"), ("jinja2", "Jinja2")):
        if find_spec(name) is None:
            raise InputError(
                f"report: needs {package}, which is not installed; `pip install matplotlib Jinja2` gets all that reports need"
            )
    for each in (folder, other):
        if each is not None and not each.is_dir():
            hint = "; `tailstep run FILE --out DIR` makes one" if each.is_file() else ""
            raise InputError(f"{each}: expected the folder of a run, a sweep or a calibration{hint}")
    if out is not None and out.suffix not in (".html", ".htm"):
        raise InputError(f"--out: expected a file that ends in .html; got {out}")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"--out: there is no folder {out.parent}")


def _page(folder: Path, other: Path | None, origin: str, *, elasticities: bool | None) -> "Page":
    # `elasticities` is None where nothing shall be computed.
    from mc.report.html.comparison import comparison_page
    from mc.report.html.run import run_page
    from mc.results import read_run

    if other is not None:
        if elasticities:
            raise InputError("--elasticities: expected the folder of one run; got two")
        return comparison_page(read_run(folder), read_run(other), origin)
    kind = _kind(folder)
    if elasticities and kind != RUN:
        raise InputError(f"--elasticities: expected the folder of a run; got that of a {kind}")
    if kind == SWEEP:
        from mc.report.html.sweep import read_sweep, sweep_page

        return sweep_page(read_sweep(folder), origin)
    if kind == CALIBRATION:
        from mc.report import calibration_steps, calibration_training
        from mc.report.html.calibration import calibration_page
        from mc.report.html.calibration_steps import steps_page
        from mc.report.html.calibration_training import training_page
        from mc.results.calibration import read_calibration

        content = read_calibration(folder)
        pages = {calibration_steps.KIND: steps_page, calibration_training.KIND: training_page}
        return pages.get(content.get("calibration", {}).get("kind"), calibration_page)(content, origin)
    record = read_run(folder)
    if elasticities is None:
        return run_page(record, (), origin)
    from mc.cli.reported import sections_of

    return run_page(record, sections_of(record, elasticities=elasticities), origin)


def _kind(folder: Path) -> str:
    """What the manifest of a folder says that it is of."""
    from mc.results.calibration import is_calibration
    from mc.results.folder import read_manifest
    from mc.sweep.store import read_manifest as read_sweep_manifest

    if read_manifest(folder) is not None:
        return RUN
    if read_sweep_manifest(folder) is not None:
        return SWEEP
    if is_calibration(folder):
        return CALIBRATION
    raise InputError(
        f"{folder}: expected the folder of a run, a sweep or a calibration; got no readable manifest.json in it"
    )
