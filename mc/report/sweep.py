"""A sweep for people and for programs: how much there is to do, the best cell, the Pareto front, what failed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.report.times import duration

_SHOWN = 20


@dataclass(frozen=True)
class Objective:
    """A column, and whether less of it is better."""

    column: str
    maximise: bool = False

    def values(self, table: pa.Table) -> NDArray[np.float64]:
        """What is to be minimised, by row; NaN where there is none."""
        found = table.column(self.column).to_numpy().astype(np.float64)
        return -found if self.maximise else found


def check_objectives(names: Sequence[str]) -> tuple[Objective, ...]:
    """Objectives by the names of the columns.

    Raises:
        InputError: there is no such column, or more than two are named.
    """
    known = (*(f"step_time_{each}_s" for each in ("mean", "p50", "p95", "p99", "p99_9")), "ranks")
    known = (*known, "straggler_share", "efficiency", "tokens_per_s", "mfu", "step_time_std_s")
    if len(names) > 2:
        raise InputError(f"--objective: expected one or two; got {len(names)}")
    found = []
    for name in names:
        column = name.removeprefix("-")
        if column not in known:
            raise InputError(f"--objective: expected one of {', '.join(known)}; got `{column}`")
        found.append(Objective(column, name.startswith("-")))
    return tuple(found)


def intent(sweep: Sweep) -> str:
    """How much there is to do, in a line."""
    axes = " x ".join(f"{len(axis.points):,}" for axis in sweep.axes)
    cells = f"{len(sweep):,} cells" + (f" ({axes})" if len(sweep.axes) > 1 else "")
    if sweep.config.samples == 0:
        return f"sweep: {cells}, without noise"
    if sweep.config.samples is None:
        return f"sweep: {cells}, as many samples each as `run` says" + _precision(sweep)
    return (
        f"sweep: {cells} x {sweep.config.samples:,} samples = "
        f"{len(sweep) * sweep.config.samples:,} samples{_precision(sweep)}"
    )


def _precision(sweep: Sweep) -> str:
    if sweep.config.precision is None:
        return ""
    return f", more until {sweep.config.precision} (at most {sweep.config.budget:,} each)"


def listed(sweep: Sweep) -> Iterator[str]:
    """Every cell in a line."""
    for cell in range(len(sweep)):
        yield f"{cell}: {sweep.text(cell)}"


def pareto(table: pa.Table, objectives: Sequence[Objective]) -> NDArray[np.int64]:
    """Rows that no other beats in both objectives, by the first."""
    one, two = (each.values(table) for each in objectives)
    usable = np.flatnonzero(np.isfinite(one) & np.isfinite(two))
    order = usable[np.lexsort((two[usable], one[usable]))]
    front, least = [], math.inf
    for row in order:
        if two[row] < least:
            front.append(row)
            least = two[row]
    return np.array(front, np.int64)


def best(table: pa.Table, objective: Objective) -> int | None:
    """The best row; None if none has the column."""
    values = objective.values(table)
    return None if np.isnan(values).all() else int(np.nanargmin(values))


def sweep_tables(
    sweep: Sweep, table: pa.Table, objectives: Sequence[Objective], elapsed_s: float
) -> list[Group]:
    """The summary as tables: the best cells, or the Pareto front; failures; the cost."""
    failed = np.flatnonzero(np.array(table.column("status").to_pylist()) != "ok")
    parts: list[Any] = []
    if len(objectives) == 2:
        rows = pareto(table, objectives)
        title = f"Pareto front: {len(rows):,} of {table.num_rows:,} cells"
    else:
        values = objectives[0].values(table)
        order = np.argsort(values, kind="stable")
        rows = order[np.isfinite(values[order])]
        title = f"best of {table.num_rows:,} cells by {objectives[0].column}"
    if len(rows):
        parts.append(_table(sweep, table, rows[:_SHOWN], objectives, title))
    if len(rows) > _SHOWN:
        parts.append(Text(f"and {len(rows) - _SHOWN:,} more"))
    if len(failed):
        parts.append(Text(f"{len(failed):,} cells failed:"))
        errors = table.column("error").to_pylist()
        cells = table.column("cell").to_pylist()
        parts += [
            Text(f"  {cells[row]} ({sweep.text(cells[row])}): {errors[row]}") for row in failed[:_SHOWN]
        ]
    drawn = int(table.column("samples").to_numpy().sum())
    said = f", {drawn:,} samples" if drawn else ""
    parts.append(Text(f"{table.num_rows:,} cells{said} in {duration(elapsed_s)}"))
    return [Group(*parts)]


def _table(
    sweep: Sweep, table: pa.Table, rows: NDArray[np.int64], objectives: Sequence[Objective], title: str
) -> Table:
    shown = Table(title=title, title_justify="left")
    columns = dict.fromkeys(
        (
            *(each.column for each in objectives),
            *("step_time_p50_s", "step_time_p99_s", "efficiency", "straggler_share"),
        )
    )
    for name in ("cell", *sweep.paths, *columns):
        shown.add_column(name.rpartition(".")[2] if name in sweep.paths else _heading(name), justify="right")
    for row in table.take(pa.array(rows)).to_pylist():
        values = dict(sweep_values(sweep, row["cell"]))
        shown.add_row(
            str(row["cell"]),
            *(values[path] for path in sweep.paths),
            *(_number(name, row[name]) for name in columns),
        )
    return shown


def sweep_values(sweep: Sweep, cell: int) -> list[tuple[str, str]]:
    """Path and value of a cell, as the file writes them."""
    texts = (str(node.plain()) for _, node in sweep.values(cell))
    return list(zip(sweep.paths, texts, strict=True))


def sweep_json(
    sweep: Sweep, table: pa.Table, objectives: Sequence[Objective], elapsed_s: float
) -> dict[str, Any]:
    """The summary as JSON."""

    def shown(row: int) -> dict[str, Any]:
        whole = table.slice(row, 1).to_pylist()[0]
        return {name: value for name, value in whole.items() if name not in ("histogram", "top_s")}

    statuses = table.column("status").to_pylist()
    found: dict[str, Any] = {
        "cells": table.num_rows,
        "samples": int(table.column("samples").to_numpy().sum()),
        "elapsed_s": elapsed_s,
        "best": {},
        "failed": [shown(row) for row, status in enumerate(statuses) if status != "ok"],
    }
    for objective in objectives:
        row = best(table, objective)
        found["best"][objective.column] = None if row is None else shown(row)
    if len(objectives) == 2:
        found["pareto"] = [shown(int(row)) for row in pareto(table, objectives)]
    return found


def _heading(name: str) -> str:
    return name.removesuffix("_s").replace("step_time_", "").replace("_", " ")


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name.endswith("_s") and not name.endswith("per_s"):
        return duration(value)
    if name in ("efficiency", "straggler_share", "mfu"):
        return f"{100 * value:.1f} %"
    return f"{value:,.6g}"
