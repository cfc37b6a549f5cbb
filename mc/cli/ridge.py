"""`tailstep ridge`: what a chip must compute for each byte on the wire, and what a plan has it compute."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mc.catalog import Chip, chip, chips
from mc.cli.options import Overrides
from mc.config import load_experiment
from mc.document import did_you_mean
from mc.errors import InputError
from mc.network_roofline import ARITHMETIC, TIERS, WIRES, RidgeError, movements, ridges


def ridge(
    config: Annotated[
        str | None,
        typer.Argument(
            help="An experiment file whose model is a transformer, or a shipped one by name; the catalog's chips without.",
            show_default=False,
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option("--chip", metavar="NAME", help="Only this chip of the catalog; repeatable."),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="NAME", help="Of the arithmetic; repeatable.  [default: bf16, fp8, fp4]"
        ),
    ] = None,
    wires: Annotated[
        list[str] | None,
        typer.Option("--wire", metavar="NAME", help="Of numbers on the wire; repeatable.  [default: bf16]"),
    ] = None,
    tiers: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="NAME", help="scale-up or scale-out; repeatable.  [default: both]"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the roofs (.svg, .png, .pdf).", show_default=False),
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Network roofline: ridge points of chips by generation, format and tier; with CONFIG a plan's traffic against them."""
    if plot is not None:
        from mc.report.pictures.base import check_plot

        check_plot(plot)
    if config is None:
        _of_chips(chosen, formats, wires, tiers, overrides, plot, as_json=as_json)
        return
    given = {"--chip": chosen, "--format": formats, "--wire": wires, "--tier": tiers}
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(f"{wrong[0]}: expected none with CONFIG, whose chip, formats and tiers are its own")
    experiment = load_experiment(config, overrides or ())
    from mc.experiment.plan_traffic import plan_load
    from mc.report.pictures.ridge import plot_load
    from mc.report.ridge import load_json, load_table

    found = plan_load(experiment)
    if as_json:
        print(json.dumps(load_json(experiment.name, found), indent=2, allow_nan=False))
    else:
        _print(load_table(experiment.name, found))
    if plot is not None:
        plot_load(plot, experiment.name, found)


def _of_chips(
    chosen: list[str] | None,
    formats: list[str] | None,
    wires: list[str] | None,
    tiers: list[str] | None,
    overrides: list[str] | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    if overrides:
        raise InputError("--set: expected a CONFIG to set values of; got none")
    names: list[Chip] = [chip(name) for name in chosen] if chosen else list(chips().values())
    offered = sorted({each for one in chips().values() for each in one.peak})
    found = list(
        ridges(
            names,
            _known("--format", formats, offered, ARITHMETIC),
            _known("--wire", wires, WIRES, ("bf16",)),
            _known("--tier", tiers, TIERS, TIERS),
        )
    )
    if not found:
        raise RidgeError("expected chips that have the formats and the tiers asked for; none has")
    asked = {each.chip for each in found}
    moved = [each for each in movements() if each.before.tier in {row.tier for row in found}]
    moved = [each for each in moved if {each.before.chip, each.after.chip} <= asked]
    from mc.report.pictures.ridge import plot_ridges
    from mc.report.ridge import ridges_json, ridges_table

    if as_json:
        print(json.dumps(ridges_json(found, moved), indent=2, allow_nan=False))
    else:
        _print(ridges_table(found, moved))
    if plot is not None:
        plot_ridges(plot, found)


def _known(option: str, given: list[str] | None, known: Sequence[str], default: Sequence[str]) -> Any:
    """The names given for an option, checked; raises InputError."""
    for each in given or ():
        if each not in known:
            raise InputError(f"{option}: unknown name `{each}`; {did_you_mean(each, known, most=len(known))}")
    return list(given or default)


def _print(table: Any) -> None:
    from rich.console import Console

    console = Console()
    # A pipe has no width (rich takes 80); the widest tables need more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    console.print(table)
