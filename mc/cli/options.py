"""Options that several verbs share, spelt once."""

import sys
from typing import Annotated

import typer

from mc.config import ClusterConfig, ExperimentConfig

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value, as in `run.samples=1000`; repeatable."
    ),
]


def say_fixed(config: ClusterConfig | ExperimentConfig) -> None:
    """Says which figures of a calibrated cluster or experiment `--set` has made known."""
    posterior = config.posterior if isinstance(config, ClusterConfig) else config.uncertain
    if posterior is not None and posterior.fixed:
        print(f"set, so no longer uncertain: {', '.join(posterior.fixed)}", file=sys.stderr)
