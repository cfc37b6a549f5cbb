"""`tailstep show`: print a configuration as it is understood."""

import json
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.config import config_hash, load_any, resolved, resolved_yaml
from mc.config.shipped import quickstart


def show(
    file: Annotated[
        str | None, typer.Argument(help="A YAML file of any kind; the quickstart if left out.")
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of YAML.")] = False,
) -> None:
    """Print a configuration as it is understood.

    What it inherits and refers to is put in, every default is spelled out, every quantity has its unit. The
    output is itself a configuration that stands alone.
    """
    kind, config = load_any(file if file is not None else quickstart(), overrides or ())
    if as_json:
        print(json.dumps(resolved(config), indent=2))
    else:
        print(f"# {kind} {config_hash(config)}")
        print(resolved_yaml(config), end="")
