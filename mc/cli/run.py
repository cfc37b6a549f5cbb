"""`tailstep run`: sample an experiment and say how long its step takes."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mc.cli.options import Overrides, say_fixed
from mc.config import ExperimentConfig, config_hash, load_experiment
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.experiment.serving_front import FrontPoint


def run(
    config: Annotated[
        str | None,
        typer.Argument(help="An experiment file, or a shipped one by name; the quickstart if left out."),
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Keep the samples there, as Parquet with a manifest."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of serving, draw throughput against the time of a token, for batches and tp (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Sample the steps of an experiment: quantiles, where the time goes, what the slowest rank costs."""
    if plot is not None:
        from mc.report.pictures.base import check_plot

        check_plot(plot)
    experiment = load_experiment(config, overrides or ())
    say_fixed(experiment)
    if plot is not None and experiment.serving is None:
        raise InputError("--plot: expected an experiment with `serving`; got one without")
    # The engine brings JAX, which takes seconds: not before the configuration is known to be good.
    from mc.report import progress
    from mc.results import check_folder, write_run

    if out is not None:
        check_folder(out, config_hash(experiment))
    from mc.experiment import run as run_experiment

    command = _command(config, overrides or (), out)
    with progress("sampling", total=experiment.run.samples) as advance:
        result = run_experiment(experiment, command=command, advance=advance)
    if experiment.uncertain is not None:
        from mc.sensitivity import with_model

        result = with_model(experiment, result)
    if out is not None:
        write_run(out, result)
    front = [] if plot is None else _drawn(plot, experiment)
    if as_json:
        from mc.report import run_json

        drawn = {} if plot is None else {"front": [asdict(each) for each in front]}
        print(json.dumps(run_json(result) | drawn, allow_nan=False))
    else:
        from rich.console import Console

        from mc.report import run_table

        console = Console()
        console.print(run_table(result))
        if out is not None:
            console.print(f"kept in {out}", markup=False, highlight=False)


def _drawn(plot: Path, experiment: ExperimentConfig) -> "list[FrontPoint]":
    from mc.experiment.serving_front import serving_front
    from mc.report.pictures.serving import plot_serving

    points = serving_front(experiment)
    plot_serving(plot, experiment.name, points)
    return points


def _command(config: str | None, overrides: list[str] | tuple[str, ...], out: str | None) -> str:
    words = ["tailstep", "run"] + ([config] if config is not None else [])
    for override in overrides:
        words += ["--set", override]
    return shlex.join(words + (["--out", out] if out is not None else []))
