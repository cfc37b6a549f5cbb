"""`tailstep diff`: two experiments, or two runs that were kept, side by side."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mc.cli.options import Overrides
from mc.config import ExperimentConfig, load_experiment
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.results import RunResult


def diff(
    first: Annotated[
        str, typer.Argument(metavar="A", help="An experiment, or the folder of a run.", show_default=False)
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Say what two experiments differ in: their configuration, the step, and every part of it.

    Experiments are run with the seed and the samples of A, so that both meet the same noise.
    """
    kept, due = {}, {}
    for place, name in enumerate((first, second)):
        if Path(name).is_dir():
            if overrides:
                raise InputError(f"--set: expected two experiment files; got the folder of a run, `{name}`")
            kept[place] = name
        else:
            due[place] = load_experiment(name, overrides or ())
    results: dict[int, RunResult] = {}
    if kept:
        from mc.results import read_run

        results = {place: read_run(name).result for place, name in kept.items()}
    if len(due) == 2:
        due[1] = due[1].model_copy(update={"run": due[0].run})
    if due:
        results |= _run(due)
    from rich.console import Console

    from mc.report.diff import diff_json, diff_table
    from mc.results.comparison import compare

    found = compare(results[0], results[1])
    if as_json:
        print(json.dumps(diff_json(found), indent=2, allow_nan=False))
        return
    console = Console()
    shown = diff_table(found)
    # A pipe has no width (rich takes 80); the tables need more.
    console.width = max(console.width, Console(width=500).measure(shown).minimum)
    console.print(shown)


def _run(due: dict[int, ExperimentConfig]) -> "dict[int, RunResult]":
    # The engine brings JAX, which takes seconds: not before both configurations are known to be good.
    from mc.experiment import run
    from mc.report import progress

    total = sum(experiment.run.samples for experiment in due.values())
    with progress("sampling", total=total) as advance:
        return {place: run(experiment, advance=advance) for place, experiment in due.items()}
