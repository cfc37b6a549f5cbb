"""`tailstep mitigations`: what can be done about stragglers, and what each of it brings."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import load_experiment
from mc.errors import InputError


def mitigations(
    config: Annotated[
        str, typer.Argument(help="An experiment file, or a shipped one by name.", show_default=False)
    ] = "quickstart",
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="KEY=VALUE[;KEY=VALUE]",
            help="What to try instead of the usual, as `mitigations.local_steps=8`; any keys of the file, several at once with a "
            "semicolon between them; repeatable.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw p99 and useful work per second (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Try mitigations of stragglers: what each does to mean, median and p99 of a step, and to useful work per second.

    All are drawn with the same random numbers, and ranked by p99.
    """
    from mc.report.pictures.base import check_plot

    if plot is not None:
        check_plot(plot)
    experiment = load_experiment(config, overrides or ())
    if experiment.serving is not None:
        raise InputError("mitigations: expected an experiment of training; got one with `serving`")
    # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
    from mc.experiment.mitigations import default_switches, try_mitigations, variants_of
    from mc.report import progress
    from mc.report.mitigations import mitigations_json, mitigations_table
    from mc.report.pictures.mitigations import plot_mitigations

    asked = (
        default_switches(experiment)
        if tries is None
        else tuple(tuple(each.strip() for each in one.split(";")) for one in tries)
    )
    variants, impossible = variants_of(config, overrides or (), asked)
    if tries is not None and impossible:
        # What was asked for is a mistake where it cannot be; what is usual need not suit.
        raise next(iter(impossible.values()))
    refused = {name: error.problems[0].message for name, error in impossible.items()}
    with progress("sampling", total=experiment.run.samples * (1 + len(variants))) as advance:
        found = try_mitigations(experiment, variants, advance, skip=tries is None)
    refused |= found.impossible
    if plot is not None:
        plot_mitigations(plot, found)
    if as_json:
        print(json.dumps(mitigations_json(found, refused), indent=2, allow_nan=False))
        return
    from rich.console import Console

    console, shown = Console(), mitigations_table(found, refused)
    # A pipe has no width (rich takes 80); the table needs more.
    console.width = max(console.width, Console(width=500).measure(shown).maximum)
    console.print(shown, soft_wrap=True)
