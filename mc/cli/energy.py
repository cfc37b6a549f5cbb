"""`tailstep energy`: joules of a step by tier, tokens per joule, and the largest cluster under a facility's budget."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import load_experiment
from mc.energy import Facility
from mc.errors import InputError
from mc.units import Dimension, UnitError, parse


def energy(
    config: Annotated[
        str,
        typer.Argument(
            help="An experiment file whose model is a transformer, or a shipped one by name.",
            show_default=False,
        ),
    ],
    budget: Annotated[str, typer.Option(metavar="POWER", help="Of a facility, from the grid.")] = "1 GW",
    pue: Annotated[float, typer.Option(help="Power of the facility over that of its computers.")] = 1.2,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw where the joules go (.svg, .png, .pdf).", show_default=False),
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Energy of a training step: chips, hosts, links of each tier moving and waiting; tokens per joule; what a budget feeds."""
    if plot is not None:
        from mc.report.plot import check_plot

        check_plot(plot)
    try:
        facility = Facility(parse(budget, Dimension.POWER), pue)
    except UnitError as error:
        raise InputError(f"--budget: {error}") from None
    experiment = load_experiment(config, overrides or ())
    from mc.experiment.energy import experiment_energy, largest
    from mc.report.energy import energy_json, energy_table, plot_energy

    found = experiment_energy(experiment)
    most = largest(experiment, facility, found)
    if as_json:
        print(json.dumps(energy_json(experiment.name, found, facility, most), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        console = Console()
        table = energy_table(experiment.name, found, facility, most)
        console.width = max(console.width, Console(width=500).measure(table).maximum)
        console.print(table)
    if plot is not None:
        plot_energy(plot, experiment.name, found)
