"""`tailstep import`: what logs and tables of measurements hold, as one table."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mc.config import COLLECTIVES
from mc.document import did_you_mean
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.logs import Hints, Imported

# Spelt here, since the readers bring pyarrow, which `--help` need not wait for; a test compares.
FORMATS = (
    "nccl-inspector",
    "nccl-tests-json",
    "rccl-tests-json",
    "nccl-tests",
    "nccl-tuner",
    "p2pBandwidthLatencyTest",
    "osu",
    "imb",
    "perftest",
    "table",
)
# Below that, a file is read before a bar could be looked at.
_LONG = 8 << 20


def import_logs(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Logs and tables of measurements, also gzipped.", show_default=False
        ),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help=f"What wrote the files, one of {', '.join(FORMATS)}; by default their content tells.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the table: .parquet, .csv or .jsonl.", show_default=False
        ),
    ] = None,
    collective: Annotated[
        str | None, typer.Option(help="The collective, if the files do not say.", show_default=False)
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="Ranks that took part.", min=1, show_default=False)
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes they were on.", min=1, show_default=False)] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="As the library names it, such as Ring.", show_default=False)
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="As the library names it, such as LL128.", show_default=False)
    ] = None,
    device: Annotated[str | None, typer.Option(help="The accelerator.", show_default=False)] = None,
    step_column: Annotated[
        str | None,
        typer.Option(help="The column of step times, in a table or series of them.", show_default=False),
    ] = None,
    step_unit: Annotated[
        str | None, typer.Option(help="Its unit: s, ms, us or ns.", show_default=False)
    ] = None,
    ranks_column: Annotated[
        str | None, typer.Option(help="The column of cluster sizes, likewise.", show_default=False)
    ] = None,
    bandwidth_unit: Annotated[
        Literal["GB/s", "Gb/s"] | None,
        typer.Option(help="Of bandwidths in a column that does not say.", show_default=False),
    ] = None,
    *,
    keep_conflicts: Annotated[
        bool, typer.Option("--keep-conflicts", help="Keep rows that contradict themselves, flagged as such.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Read measurements of collectives and steps, say what was understood, and keep them as one table.

    What is given here goes before what the files say or an importer infers.
    """
    from mc.logs import Hints, write_table
    from mc.logs.table import check_suffix
    from mc.report.imported import imported_json, imported_text

    if out is not None:
        check_suffix(out)
    hints = Hints(
        _checked_collective(collective),
        ranks,
        nodes,
        algorithm,
        protocol,
        device,
        step_column,
        _checked_unit(step_unit),
        ranks_column,
        bandwidth_unit,
        keep_conflicts,
    )
    found = _read(files, hints, format)
    described: dict[str, Any] = imported_json(found)
    if out is not None:
        write_table(found.table, out, described)
        print(f"wrote {out}: {len(found.table):,} rows", file=sys.stderr)
    print(json.dumps(described, indent=2, allow_nan=False) if as_json else imported_text(found))


def _checked_collective(name: str | None) -> str | None:
    if name is not None and name not in COLLECTIVES:
        raise InputError(f"--collective: unknown collective `{name}`; {did_you_mean(name, COLLECTIVES)}")
    return name


def _checked_unit(unit: str | None) -> str | None:
    if unit is not None and unit not in ("s", "ms", "us", "ns"):
        raise InputError(f"--step-unit: expected s, ms, us or ns; got `{unit}`")
    return unit


def _read(files: list[str], hints: "Hints", format: str | None) -> "Imported":
    from mc.logs import read_logs
    from mc.report import progress

    sizes = [Path(file).stat().st_size for file in files if Path(file).is_file()]
    if sum(sizes) < _LONG:
        return read_logs(files, hints, format=format)
    # Once to recognise each file, once to read it; recognition mostly ends early.
    with progress("reading (bytes)", total=sum(sizes)) as advance:
        return read_logs(files, hints, format=format, advance=advance)
