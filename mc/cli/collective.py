"""`tailstep collective`: what one collective costs by each algorithm, without jitter."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mc.cli.options import Overrides
from mc.config import COLLECTIVES, load_cluster
from mc.document import did_you_mean
from mc.errors import InputError
from mc.units import Dimension, format_quantity, parse

if TYPE_CHECKING:
    from mc.collectives import Row
    from mc.fabric import Cluster

_DEFAULT_SIZE = "64 MiB"
_DIGITS = 4


def collective(
    collective: Annotated[
        str,
        typer.Argument(metavar="COLLECTIVE", help=f"One of {', '.join(COLLECTIVES)}.", show_default=False),
    ],
    cluster: Annotated[
        str, typer.Option(help="A cluster file, or the name of a shipped one.")
    ] = "dgx-h100-superpod",
    ranks: Annotated[
        int | None,
        typer.Option(help="How many consecutive ranks take part; all by default.", show_default=False),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            help=f"Message size, of the whole buffer as in nccl-tests.  [default: {_DEFAULT_SIZE}]",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="A name; `auto` for the fastest; `all` that can run on these ranks.")
    ] = "all",
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the algorithms of a collective: time, bandwidths, rounds and bytes.

    Links are idle and nothing jitters: this is the floor that random delays add to. Bandwidths are those of
    nccl-tests: algbw is size over time, busbw what it means for a link.
    """
    question = _ask(collective, size)
    config = load_cluster(cluster, overrides or ())

    import jax

    from mc.collectives import evaluate
    from mc.fabric import build_cluster

    # Double precision keeps numbers at the border free of rounding; nothing here is large.
    with jax.enable_x64(True):
        fabric = build_cluster(config)
        count = fabric.size if ranks is None else ranks
        rows = evaluate(fabric, question.collective, count, question.size, algorithm)
        where = _span_text(fabric, count)
    if as_json:
        print(json.dumps([_as_json(row) for row in rows], indent=2))
    else:
        _print_table(question, rows, where)


@dataclass(frozen=True)
class _Question:
    """What to price: a collective that exists and a size in bytes that suits it."""

    collective: str
    size: float


def _ask(collective: str, size: str | None) -> _Question:
    if collective not in COLLECTIVES:
        raise InputError(f"unknown collective `{collective}`; {did_you_mean(collective, COLLECTIVES)}")
    if collective == "barrier":
        if size is not None:
            raise InputError("--size: a barrier carries no data; leave `--size` out")
        return _Question(collective, 0.0)
    text = _DEFAULT_SIZE if size is None else size
    try:
        value = parse(text, Dimension.SIZE)
    except InputError as error:
        raise InputError(f"--size: {error}") from None
    if value <= 0:
        raise InputError(f"--size: expected a size above zero, such as 64 MiB; got {text}")
    return _Question(collective, value)


def _as_json(row: "Row") -> dict[str, float | int | str | None]:
    return {
        "algorithm": row.algorithm,
        "time_s": row.time,
        "algbw_Bps": row.algorithm_bandwidth,
        "busbw_Bps": row.bus_bandwidth,
        "rounds": row.rounds,
        "bytes_per_rank": row.bytes_per_rank,
    }


def _span_text(cluster: "Cluster", ranks: int) -> str:
    from mc.fabric import is_even, span

    extents = span(cluster, ranks)
    if not extents:
        return f"1 rank of {cluster.name} spans no tier"
    parts = " x ".join(f"{extent.tier.name} ({extent.units})" for extent in extents)
    uneven = "" if is_even(extents) else ", unevenly"
    return f"{ranks} ranks of {cluster.name} span {parts}{uneven}"


def _print_table(question: _Question, rows: "list[Row]", where: str) -> None:
    from rich.console import Console
    from rich.table import Table

    def quantity(value: float | None, dimension: Dimension) -> str:
        return "-" if value is None else format_quantity(value, dimension, digits=_DIGITS)

    size = f" of {format_quantity(question.size, Dimension.SIZE)}" if question.size else ""
    table = Table(title=f"{question.collective}{size}", title_justify="left", box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    for name in ("time", "algbw", "busbw", "rounds", "bytes/rank"):
        table.add_column(name, justify="right")
    table.add_column("")
    for place, row in enumerate(rows):
        table.add_row(
            row.algorithm,
            quantity(row.time, Dimension.TIME),
            quantity(row.algorithm_bandwidth, Dimension.BANDWIDTH),
            quantity(row.bus_bandwidth, Dimension.BANDWIDTH),
            f"{row.rounds:,}",
            quantity(row.bytes_per_rank, Dimension.SIZE),
            "best" if place == 0 and len(rows) > 1 else "",
            style="bold" if place == 0 and len(rows) > 1 else None,
        )
    console = Console()
    console.print(where, markup=False, highlight=False, soft_wrap=True)
    console.print(table)
