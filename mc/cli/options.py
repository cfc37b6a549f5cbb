"""Options that several verbs share, spelt once."""

import sys
from typing import Annotated

import typer

from mc.config import ClusterConfig

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value, as in `run.samples=1000`; repeatable."
    ),
]


def say_fixed(cluster: ClusterConfig) -> None:
    """Says which figures of a calibrated cluster `--set` has made known."""
    if cluster.posterior is not None and cluster.posterior.fixed:
        print(f"set, so no longer uncertain: {', '.join(cluster.posterior.fixed)}", file=sys.stderr)
