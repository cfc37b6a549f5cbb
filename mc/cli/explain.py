"""`tailstep explain`: what a plan means on a cluster, and what placing it otherwise would cost."""

import json
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import load_experiment


def explain(
    config: Annotated[
        str,
        typer.Argument(
            help="An experiment file whose model is a transformer, or a shipped one by name.",
            show_default=False,
        ),
    ],
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Say what a plan means: groups and the tiers they span, every message and its price, memory, other placements.

    Prices are those of idle links. Nothing is sampled.
    """
    experiment = load_experiment(config, overrides or ())
    from mc.cli.explained import explained
    from mc.report.explain import explain_json, explain_table

    found = explained(experiment)
    if as_json:
        print(json.dumps(explain_json(found), indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    table = explain_table(found)
    # A pipe has no width (rich takes 80); the widest tables need more.
    console.width = max(console.width, Console(width=500).measure(table).maximum)
    console.print(table)
