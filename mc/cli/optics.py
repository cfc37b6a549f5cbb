"""`tailstep optics`: how far copper reaches, what each medium takes, and where one hands over to another."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mc.errors import InputError
from mc.units import Dimension, UnitError, parse


def optics(
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Only this rate of a lane, such as '200 Gb/s'; all there are without."
        ),
    ] = None,
    length: Annotated[
        str, typer.Option(metavar="LENGTH", help="Of the links whose energy is shown.")
    ] = "1 m",
    chips: Annotated[
        int, typer.Option(help="Chips of a job that cannot do without any link.", min=1, max=10**8)
    ] = 16384,
    links: Annotated[float, typer.Option(help="Links of such a chip.", min=0.001, max=1000)] = 3.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw energy and reach (.svg, .png, .pdf).", show_default=False),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Copper against optics by lane rate: reach, energy per bit, where copper hands over, links that fail; NVL72's spine."""
    if plot is not None:
        from mc.report.pictures.base import check_plot

        check_plot(plot)
    from mc.catalog.media import media
    from mc.optics import compare
    from mc.report.optics import optics_json, optics_table
    from mc.report.pictures.optics import plot_optics

    metres = _quantity("--length", length, Dimension.LENGTH)
    rates = [each.rate for each in media().lanes]
    if rate is not None:
        rates = [8 * _quantity("--rate", rate, Dimension.BANDWIDTH)]
    found = {each: compare(each, metres) for each in rates}
    if as_json:
        print(json.dumps(optics_json(found, chips, links), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        console = Console()
        table = optics_table(found, chips, links)
        console.width = max(console.width, Console(width=500).measure(table).maximum)
        console.print(table)
    if plot is not None:
        plot_optics(plot, list(found))


def _quantity(option: str, text: str, dimension: Dimension) -> float:
    try:
        return parse(text, dimension)
    except UnitError as error:
        raise InputError(f"{option}: {error}") from None
