"""`tailstep sweep`: an experiment in many variants; `tailstep merge`: shards of a sweep in one folder."""

import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mc.cli.options import Overrides
from mc.errors import InputError

SOME_FAILED = 3


def sweep(
    config: Annotated[
        str,
        typer.Argument(
            help="An experiment file with a `sweep` block, or a shipped one by name.", show_default=False
        ),
    ],
    overrides: Overrides = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Keep the rows there, as Parquet parts with a manifest."),
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Evaluate the I-th of N parts of the work alone.")
    ] = "1/1",
    objective: Annotated[
        list[str] | None,
        typer.Option(help="A column to minimise (`-NAME` to maximise); two give the Pareto front."),
    ] = None,
    cell: Annotated[
        int | None, typer.Option(min=0, help="Evaluate this cell alone, to the same last digit.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw step times and efficiency over rank counts (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Who evaluates the batches: `local`, or `dask` with --scheduler.")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDR", help="Of the Dask scheduler, such as tcp://10.0.0.1:8786.")
    ] = None,
    coordinator: Annotated[
        str | None,
        typer.Option(metavar="ADDR", help="Of process 0 with --distributed, such as 10.0.0.1:8476."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many there are with --distributed.")
    ] = None,
    process_id: Annotated[int | None, typer.Option(min=0, help="Which of them this is, from 0.")] = None,
    join_timeout: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="How long to wait for the other processes.")
    ] = 300,
    *,
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Draw each batch on the devices of several processes together (`jax.distributed`).",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all cells, list them, run none.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in DIR already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Run an experiment in many variants, and say which is best.

    Exits with 3 if some cells failed; the others are kept.
    """
    from mc.config.load_sweep import check_cells, load_sweep
    from mc.report import progress
    from mc.report.pictures.base import check_plot
    from mc.report.pictures.sweep import curves_of, doubling_lines, path_to_plot, plot_sweep
    from mc.report.sweep import (
        Summary,
        check_objectives,
        intent,
        listed,
        sweep_json,
        sweep_tables,
        sweep_values,
    )

    number = _shard(shard)
    if executor not in ("local", "dask"):
        raise InputError(f"--executor: expected local or dask; got `{executor}`")
    if (executor == "dask") != (scheduler is not None):
        raise InputError(
            "--scheduler: expected the address of a scheduler with `--executor dask`, and else none"
        )
    if resume and out is None:
        raise InputError("--resume: expected --out with the folder to go on with")
    _check_distributed(distributed, executor, (coordinator, processes, process_id))
    found = load_sweep(config, overrides or ())
    if distributed and found.config.samples == 0:
        raise InputError(
            "--distributed: expected a sweep with samples; got one without noise, which `--shard` divides"
        )
    path = None
    if plot is not None:
        check_plot(plot)
        path = path_to_plot(found)
    objectives = check_objectives(objective or ["step_time_mean_s"])
    print(intent(found), file=sys.stderr)
    check_cells(found)
    if dry_run:
        for line in listed(found):
            print(line)
        return
    speaks = True
    if distributed:
        from mc.sweep.distributed import join

        _keep_stdout()
        speaks = join(coordinator, processes, process_id, join_timeout)
    import pyarrow as pa

    # The engine brings JAX, which takes seconds: not before every cell is known to be good.
    from mc.sweep.batch import batches_of
    from mc.sweep.dask import DaskExecutor
    from mc.sweep.sweep import run_one, run_sweep, shard_of

    if cell is not None:
        if cell >= len(found):
            raise InputError(f"--cell: expected a cell from 0 to {len(found) - 1}; got {cell}")
        table = run_one(found, cell)
        print(json.dumps(table.to_pylist()[0]))
        return
    due = shard_of(batches_of(found), number)
    total = sum(batch.stop - batch.start for batch in due)
    summary = Summary(found, objectives, keep_all=plot is not None)
    quiet = contextlib.nullcontext(lambda count: None)
    try:
        with progress("cells", total=max(total, 1)) if speaks else quiet as advance:
            outcome = run_sweep(
                found,
                out=out,
                resume=resume,
                shard=number,
                executor=None if scheduler is None else DaskExecutor(scheduler),
                command=_command(config, overrides or (), out, shard),
                observe=summary.add,
                advance=advance,
                log=lambda text: print(f"sweep: {text}", file=sys.stderr) if speaks else None,
            )
    except KeyboardInterrupt:
        if out is not None:
            print(
                f"{out}: batches that were finished are kept; `--resume` goes on with them", file=sys.stderr
            )
        raise
    if distributed:
        from mc.sweep.distributed import leave

        leave()
    if not speaks:
        return
    if as_json:
        print(json.dumps(sweep_json(summary, outcome), allow_nan=False))
    else:
        from rich.console import Console

        console = Console()
        shown = sweep_tables(summary, outcome)
        console.width = max(console.width, Console(width=500).measure(shown).minimum)
        console.print(shown)
        if out is not None:
            console.print(f"kept in {out}", markup=False, highlight=False)
    if plot is not None and path is not None and summary.all:
        table = pa.concat_tables(summary.all)
        curves = curves_of(table, found.paths, path, lambda row: dict(sweep_values(found, row["cell"])))
        for line in doubling_lines(path, curves):
            print(line, file=sys.stderr)
        plot_sweep(plot, found.name, path, curves)
    if outcome.failed:
        raise typer.Exit(SOME_FAILED)


def merge(
    folders: Annotated[
        list[str], typer.Argument(metavar="DIR...", help="Folders of shards.", show_default=False)
    ],
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Where all of it goes.", show_default=False)
    ],
) -> None:
    """Put shards of a sweep into one folder.

    Exits with 3 if cells are missing or have failed.
    """
    from mc.sweep.merge import merge as merge_folders

    found = merge_folders(folders, out)
    print(f"{out}: {found.cells:,} cells")
    if found.failed:
        print(f"{found.failed:,} cells failed", file=sys.stderr)
    for start, stop in found.missing:
        print(f"missing: cells {start:,} to {stop - 1:,}", file=sys.stderr)
    if found.failed or found.missing:
        raise typer.Exit(SOME_FAILED)


def _check_distributed(distributed: bool, executor: str, told: tuple[object, ...]) -> None:  # noqa: FBT001
    if distributed and executor != "local":
        raise InputError(f"--distributed: expected the local executor; got `{executor}`")
    if not distributed and any(each is not None for each in told):
        raise InputError(
            "--coordinator, --processes, --process-id: expected them with --distributed alone; got them without"
        )


def _keep_stdout() -> None:
    """Leaves standard output to this program: Gloo, which connects processes on CPUs, reports on it."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(own, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)


def _shard(text: str) -> tuple[int, int]:
    first, _, second = text.partition("/")
    if first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second):
        return int(first), int(second)
    raise InputError(f"--shard: expected I/N with I from 1 to N, such as 2/8; got `{text}`")


def _command(config: str, overrides: list[str] | tuple[str, ...], out: str | None, shard: str) -> str:
    words = ["tailstep", "sweep", config]
    for override in overrides:
        words += ["--set", override]
    words += ["--out", out] if out is not None else []
    return shlex.join(words + (["--shard", shard] if shard != "1/1" else []))
