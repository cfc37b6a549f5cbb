"""Options that several verbs share, spelt once."""

from typing import Annotated

import typer

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a value, as in `run.samples=1000`; repeatable."
    ),
]
