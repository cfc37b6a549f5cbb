"""`tailstep schema`: the JSON Schema of a kind of file, for editors."""

import json
from typing import Annotated

import typer

from mc.config import FileKind, json_schema


def schema(
    kind: Annotated[FileKind, typer.Argument(help="The kind of file.")] = "experiment",
) -> None:
    """Print the JSON Schema of a kind of configuration file.

    Editors that speak YAML take it from a first line such as `# yaml-language-server:
    $schema=experiment.json`.
    """
    print(json.dumps(json_schema(kind), indent=2))
