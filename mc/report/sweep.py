"""A sweep for people and for programs: how much there is to do, the best cell, the Pareto front, what failed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.report.times import duration

if TYPE_CHECKING:
    from mc.sweep.sweep import Outcome

_SHOWN = 20
# What a transformer is judged by.
TRAINING = ("tokens_per_s", "mfu", "bubble_fraction", "memory_B")
SERVING = ("ttft_mean_s", "ttft_p99_s", "tpot_mean_s", "tpot_p99_s", "tokens_per_s_per_chip")
HEAVY = ("histogram_first", "histogram", "top_s", "sum", "sum_of_squares")


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
    known = (*known, "straggler_share", "efficiency", "step_time_std_s", *TRAINING, *SERVING)
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
    cells = _cells(len(sweep)) + (f" ({axes})" if len(sweep.axes) > 1 else "")
    if sweep.config.samples == 0:
        return f"sweep: {cells}, without noise"
    if sweep.config.samples is None:
        return f"sweep: {cells}, as many samples each as `run` says" + _precision(sweep)
    return (
        f"sweep: {cells} x {sweep.config.samples:,} samples = "
        f"{len(sweep) * sweep.config.samples:,} samples{_precision(sweep)}"
    )


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _precision(sweep: Sweep) -> str:
    if sweep.config.precision is None:
        return ""
    return f", more until {sweep.config.precision} (at most {sweep.config.budget:,} each)"


def listed(sweep: Sweep) -> Iterator[str]:
    """Every cell in a line."""
    for cell in range(len(sweep)):
        yield f"{cell}: {sweep.text(cell)}"


class Summary:
    """What is shown of a sweep, kept while its batches go by: the best cells, or the front, and what failed."""

    def __init__(self, sweep: Sweep, objectives: Sequence[Objective], *, keep_all: bool = False):
        """Args: the sweep; one objective or two; whether to keep every row, for a picture."""
        self.sweep, self.objectives = sweep, objectives
        self.best: pa.Table | None = None
        self.failed: list[tuple[int, str]] = []
        self.all: list[pa.Table] | None = [] if keep_all else None
        self.reductions: list[NDArray[np.float64]] = []

    def add(self, table: pa.Table) -> None:
        """Takes the rows of a batch in."""
        statuses = table.column("status").to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(statuses != "ok")[:_SHOWN]:
            self.failed.append((table.column("cell")[row].as_py(), table.column("error")[row].as_py()))
        reductions = table.column("variance_reduction").to_numpy().astype(np.float64)
        self.reductions.append(reductions[np.isfinite(reductions)])
        slim = table.drop_columns([name for name in HEAVY if name in table.column_names])
        if self.all is not None:
            self.all.append(slim)
        both = slim if self.best is None else pa.concat_tables([self.best, slim])
        self.best = both.take(pa.array(self._leading(both)))

    def common_numbers(self) -> dict[str, float] | None:
        """What common random numbers are worth: the factor on the variance of a difference, over cells that say."""
        found = np.concatenate([*self.reductions, np.zeros(0)])
        if not found.size:
            return None
        low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
        return {"cells": int(found.size), "p10": float(low), "median": float(middle), "p90": float(high)}

    def _leading(self, table: pa.Table) -> NDArray[np.int64]:
        if len(self.objectives) == 2:
            return pareto(table, self.objectives)
        return ordered(table, self.objectives[0])[:_SHOWN]


def pareto(table: pa.Table, objectives: Sequence[Objective]) -> NDArray[np.int64]:
    """Rows that no other beats in both objectives, by the first; the lowest cell among equals."""
    one, two = (each.values(table) for each in objectives)
    usable = np.flatnonzero(np.isfinite(one) & np.isfinite(two))
    cells = table.column("cell").to_numpy()
    order = usable[np.lexsort((cells[usable], two[usable], one[usable]))]
    front, least = [], math.inf
    for row in order:
        if two[row] < least:
            front.append(row)
            least = two[row]
    return np.array(front, np.int64)


def ordered(table: pa.Table, objective: Objective) -> NDArray[np.int64]:
    """Rows that have the column, best first; the lowest cell among equals."""
    values, cells = objective.values(table), table.column("cell").to_numpy()
    order = np.lexsort((cells, values))
    return order[np.isfinite(values[order])]


def sweep_tables(summary: Summary, outcome: "Outcome") -> Group:
    """The best cells, or the Pareto front; failures; the cost."""
    objectives, kept = summary.objectives, summary.best
    parts: list[Any] = []
    if kept is not None and kept.num_rows:
        if len(objectives) == 2:
            title = f"Pareto front: {kept.num_rows:,} of {_cells(outcome.cells)}"
        else:
            title = f"best of {_cells(outcome.cells)} by {objectives[0].column}"
        parts.append(_table(summary.sweep, kept.slice(0, _SHOWN), objectives, title))
        if kept.num_rows > _SHOWN:
            parts.append(Text(f"and {kept.num_rows - _SHOWN:,} more"))
    if outcome.failed:
        parts.append(Text(f"{_cells(outcome.failed)} failed:"))
        parts += [
            Text(f"  {cell} ({summary.sweep.text(cell)}): {error}")
            for cell, error in sorted(summary.failed)[:_SHOWN]
        ]
    common = summary.common_numbers()
    if common is not None:
        parts.append(
            Text(
                f"common random numbers: samples of their own would have to be {common['median']:.3g} times as many for "
                f"differences to the first cell as sharp (median of {common['cells']:,} cells; "
                f"80 % of them {common['p10']:.2g} .. {common['p90']:.2g})"
            )
        )
    drawn = f", {outcome.samples:,} samples" if outcome.samples else ""
    found = f", {outcome.found:,} of them found" if outcome.found else ""
    parts.append(Text(f"{_cells(outcome.cells)}{found}{drawn} in {duration(outcome.elapsed_s)}"))
    return Group(*parts)


def _table(sweep: Sweep, table: pa.Table, objectives: Sequence[Objective], title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    columns = dict.fromkeys((*(each.column for each in objectives), *_columns(sweep, table)))
    for name in ("cell", *sweep.paths, *columns):
        shown.add_column(
            name.rpartition(".")[2] if name in sweep.paths else heading_of(name), justify="right"
        )
    for row in table.to_pylist():
        values = dict(sweep_values(sweep, row["cell"]))
        shown.add_row(
            str(row["cell"]),
            *(values[path] for path in sweep.paths),
            *(column_text(name, row[name]) for name in columns),
        )
    return shown


def _columns(sweep: Sweep, table: pa.Table) -> tuple[str, ...]:
    """What is shown beside the objectives."""
    quantiles = () if sweep.config.samples == 0 else ("step_time_p50_s", "step_time_p99_s")
    if table.column("ttft_mean_s").null_count < table.num_rows:
        tail = () if sweep.config.samples == 0 else ("ttft_p99_s", "tpot_p99_s")
        return ("ttft_mean_s", "tpot_mean_s", *tail, "tokens_per_s_per_chip")
    if table.column("mfu").null_count < table.num_rows:
        return (*quantiles, *TRAINING)
    return (*quantiles, "efficiency", "straggler_share")


def sweep_values(sweep: Sweep, cell: int) -> list[tuple[str, str]]:
    """Path and value of a cell, as the file writes them."""
    texts = (str(node.plain()) for _, node in sweep.values(cell))
    return list(zip(sweep.paths, texts, strict=True))


def sweep_json(summary: Summary, outcome: "Outcome") -> dict[str, Any]:
    """The summary as JSON."""
    rows = [] if summary.best is None else summary.best.to_pylist()
    found: dict[str, Any] = {
        "cells": outcome.cells,
        "samples": outcome.samples,
        "elapsed_s": outcome.elapsed_s,
        "failed": [
            {"cell": cell, "values": dict(sweep_values(summary.sweep, cell)), "error": error}
            for cell, error in sorted(summary.failed)
        ],
        "variance_reduction": summary.common_numbers(),
    }
    if len(summary.objectives) == 2:
        return {**found, "pareto": rows}
    return {**found, "best": rows[0] if rows else None}


def heading_of(name: str) -> str:
    """A column in words."""
    if "per_s" in name:
        return name.replace("_per_", "/").replace("_", " ")
    return name.removesuffix("_s").removesuffix("_B").replace("step_time_", "").replace("_", " ")


def column_text(name: str, value: float | None) -> str:
    """A value of a column, with its unit."""
    if value is None:
        return "-"
    if name.endswith("_s") and not name.endswith("per_s"):
        return duration(value)
    if name in ("efficiency", "straggler_share", "mfu", "bubble_fraction"):
        return f"{100 * value:.1f} %"
    if name == "memory_B":
        return f"{value / 1e9:.1f} GB"
    if "per_s" in name:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,.6g}"
