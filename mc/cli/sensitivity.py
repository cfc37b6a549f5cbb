"""`tailstep sensitivity`: what every figure of an experiment does to its step, tails included."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides, say_fixed
from mc.config import load_experiment
from mc.document import did_you_mean
from mc.errors import InputError

_NUMBERS = ("mean", "p50", "p99")
# Steps of a transformer take longer to draw.
_SAMPLES, _TRAINING_SAMPLES = 20_000, 64


def sensitivity(
    config: Annotated[
        str | None,
        typer.Argument(help="An experiment file, or a shipped one by name; the quickstart if left out."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help=f"Steps to draw.  [default: {_SAMPLES}, of a transformer {_TRAINING_SAMPLES}]",
            min=20,
            max=10**6,
            show_default=False,
        ),
    ] = None,
    by: Annotated[str, typer.Option(help=f"What figures are ranked by: {', '.join(_NUMBERS)}.")] = "p99",
    count: Annotated[int, typer.Option(help="How many to show.", min=1, max=1000)] = 20,
    figures: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            metavar="PATH",
            help="Only this one, such as `cluster.noise.spread.sigma`; repeatable.  [default: all]",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the largest as bars (.svg, .png, .pdf).", show_default=False),
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """Say what 1 % more of each figure does to a step: elasticities of mean, median and p99, with intervals.

    Every figure of the cluster and the model, by the derivatives of sampled steps.
    """
    from mc.report.pictures.base import check_plot

    if by not in _NUMBERS:
        raise InputError(f"--by: unknown `{by}`; {did_you_mean(by, _NUMBERS)}")
    if plot is not None:
        check_plot(plot)
    experiment = load_experiment(config, overrides or ())
    say_fixed(experiment)
    # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
    from mc.report import progress
    from mc.report.pictures.sensitivity import plot_sensitivity
    from mc.report.sensitivity import sensitivity_json, sensitivity_table
    from mc.sensitivity import sensitivity as found_by

    steps = samples or (_SAMPLES if experiment.model.transformer is None else _TRAINING_SAMPLES)
    run = experiment.run.model_copy(update={"samples": steps})
    with progress("differentiating, %", total=100) as advance:
        found = found_by(
            experiment.model_copy(update={"run": run}), steps, by=by, only=figures or (), advance=advance
        )
    if plot is not None:
        plot_sensitivity(plot, found, by)
    if as_json:
        print(json.dumps(sensitivity_json(found), allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    table = sensitivity_table(found, count)
    # A pipe has no width (rich takes 80); the table needs more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    console.print(table)
