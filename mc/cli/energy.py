"""`tailstep energy`: joules of a step by tier, tokens per joule, and the largest cluster under a facility's budget."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mc.cli.options import Overrides
from mc.config import ExperimentConfig, load_experiment
from mc.energy import Facility
from mc.errors import InputError
from mc.units import Dimension, UnitError, parse

Wanted = Literal["time", "energy"]
Mode = Literal["weak", "strong"]


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
    best: Annotated[
        str, typer.Option(metavar="WHAT", help="With --plans: `time`, or `energy` for the fewest joules.")
    ] = "time",
    count: Annotated[int, typer.Option(help="How many of the best plans to show.", min=1, max=100)] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw where the joules go (.svg, .png, .pdf).", show_default=False),
    ] = None,
    overrides: Overrides = None,
    *,
    plans: Annotated[
        bool, typer.Option("--plans", help="Search all plans for the most chips that the budget feeds.")
    ] = False,
    weak: Annotated[
        bool,
        typer.Option(
            "--weak/--strong", help="With --plans: let the global batch grow with the chips, or keep it."
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Energy of a training step: chips, hosts, links of each tier moving and waiting; tokens per joule; what a budget feeds.

    With --plans: the best of all plans on the most chips that the budget feeds, and where the budget goes.
    """
    if plot is not None:
        from mc.report.pictures.base import check_plot

        check_plot(plot)
    try:
        facility = Facility(parse(budget, Dimension.POWER), pue)
    except UnitError as error:
        raise InputError(f"--budget: {error}") from None
    if best not in ("time", "energy"):
        raise InputError(f"--best: expected time or energy; got `{best}`")
    experiment = load_experiment(config, overrides or ())
    if plans:
        _plans(experiment, facility, count, best, "weak" if weak else "strong", plot, as_json=as_json)
        return
    from mc.experiment.energy import experiment_energy, largest
    from mc.report.energy import energy_json, energy_table
    from mc.report.pictures.energy import plot_energy

    found = experiment_energy(experiment)
    most = largest(experiment, facility)
    _print(
        energy_json(experiment.name, found, facility, most)
        if as_json
        else energy_table(experiment.name, found, facility, most)
    )
    if plot is not None:
        plot_energy(plot, experiment.name, found)


def _plans(
    experiment: ExperimentConfig,
    facility: Facility,
    count: int,
    best: Wanted,
    mode: Mode,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """The best plans on the most chips."""
    from mc.advise.site import best_plans, fill, plans_of
    from mc.report import progress
    from mc.report.pictures.site import plot_site
    from mc.report.site import site_json, site_table

    job = fill(experiment, facility, mode)
    with progress("searching", total=plans_of(job)) as advance:
        found = best_plans(job, count, best, advance)
    _print(site_json(found) if as_json else site_table(found))
    if plot is not None:
        plot_site(plot, found)


def _print(found: Any) -> None:
    """An object as JSON, or a table as wide as it is."""
    if isinstance(found, dict):
        print(json.dumps(found, indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    # A pipe has no width (rich takes 80); the table needs more.
    console.width = max(console.width, Console(width=500).measure(found).maximum)
    console.print(found)
