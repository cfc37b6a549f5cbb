"""The table of a sweep: one row per cell, one column per swept path and per number.

Columns of a path hold numbers in SI units where all its values are numbers, else text. A number that a cell does not have
is null. Histograms are lists of counts from bucket `histogram_first` on (`mc.sweep.tally`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mc.config.load_sweep import Sweep
from mc.config.sweep_axes import quantities_of
from mc.document import Node

# The waterfall of a step that computes and then exchanges; what a transformer's has beside it is `other`.
PARTS = ("compute", "straggler_wait", "bandwidth", "latency_floor", "congestion")
STATISTICS = ("mean", "p50", "p95", "p99", "p99_9")
OK, FAILED = "ok", "failed"
# Of a column, in its metadata: the unit of a path's quantities.
UNIT = "unit"

METRICS = (
    *(f"step_time_{name}_s{end}" for name in STATISTICS for end in ("", "_low", "_high")),
    "step_time_std_s",
    *(f"{part}_s" for part in (*PARTS, "other")),
    "straggler_share",
    "efficiency",
    "variance_reduction",
    "tokens_per_s",
    "tokens_per_s_per_chip",
    "mfu",
    "hfu",
    "bubble_fraction",
    "memory_B",
    "batch",
    "requests_per_s",
    *(f"{name}_{statistic}_s" for name in ("ttft", "tpot") for statistic in ("mean", "p50", "p99")),
)
_SUMS = (
    pa.field("histogram_first", pa.int64()),
    pa.field("histogram", pa.list_(pa.int64())),
    pa.field("top_s", pa.list_(pa.float64())),
    # Whole numbers of any length, in units of 2^-46 s and of its square.
    pa.field("sum", pa.string()),
    pa.field("sum_of_squares", pa.string()),
)


@dataclass(frozen=True)
class Row:
    """What is known of one cell.

    Attributes:
        cell: its number.
        ranks: that take part.
        algorithms: what the exchange runs, tier by tier; empty where nothing was chosen.
        samples: steps drawn; 0 without noise.
        realisations: of the cluster among them.
        metrics: numbers by name, of `METRICS`.
        sums: histogram, top and moments by name, where steps were drawn.
        error: why it failed; None if it did not.
    """

    cell: int
    ranks: int | None = None
    algorithms: str = ""
    samples: int = 0
    realisations: int = 0
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    sums: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    def beside(self, metrics: Mapping[str, float | None]) -> "Row":
        """The same with further numbers."""
        return replace(self, metrics={**self.metrics, **metrics})


def failed_row(cell: int, reason: str) -> Row:
    """The row of a cell that failed."""
    return Row(cell, error=" ".join(reason.split()))


def schema_of(sweep: Sweep) -> pa.Schema:
    """The columns of a sweep's table."""
    swept = [
        pa.field(
            path,
            pa.string() if each.numbers is None else pa.float64(),
            metadata={UNIT: each.unit} if each.unit else None,
        )
        for path, each in _columns(sweep).items()
    ]
    return pa.schema(
        [
            pa.field("cell", pa.int64(), nullable=False),
            *swept,
            pa.field("status", pa.string(), nullable=False),
            pa.field("error", pa.string()),
            pa.field("ranks", pa.int64()),
            pa.field("algorithms", pa.string()),
            pa.field("samples", pa.int64(), nullable=False),
            pa.field("realisations", pa.int64(), nullable=False),
            *(pa.field(name, pa.float64()) for name in METRICS),
            *_SUMS,
        ]
    )


def table_of(sweep: Sweep, rows: Sequence[Row]) -> pa.Table:
    """The rows of cells as a table."""
    columns: dict[str, Any] = {
        "status": [OK if row.error is None else FAILED for row in rows],
        "error": [row.error for row in rows],
        "ranks": [row.ranks for row in rows],
        "algorithms": [row.algorithms for row in rows],
        "samples": [row.samples for row in rows],
        "realisations": [row.realisations for row in rows],
        **{name: [row.metrics.get(name) for row in rows] for name in METRICS},
        **{each.name: [row.sums.get(each.name) for row in rows] for each in _SUMS},
    }
    return table_with(sweep, np.array([row.cell for row in rows], np.int64), columns)


def table_with(sweep: Sweep, cells: NDArray[np.int64], columns: Mapping[str, Any]) -> pa.Table:
    """A table of cells by columns; those that are left out are null."""
    schema = schema_of(sweep)
    count = len(cells)
    all_columns = {"cell": cells, **coordinates(sweep, cells), **columns}
    arrays = [
        pa.array(all_columns[each.name], each.type)
        if each.name in all_columns
        else pa.nulls(count, each.type)
        for each in schema
    ]
    return pa.table(arrays, schema=schema)


def coordinates(sweep: Sweep, cells: NDArray[np.int64]) -> dict[str, pa.Array]:
    """The value of each path in each cell, as the columns hold it."""
    places = np.unravel_index(cells, sweep.shape)
    found = {}
    for path, each in _columns(sweep).items():
        values = pa.array(each.texts if each.numbers is None else each.numbers)
        found[path] = values.take(pa.array(places[each.axis]))
    return found


@dataclass(frozen=True)
class _Column:
    """The points of a path: on which axis, as numbers in SI units, or None and as text; the unit of quantities."""

    axis: int
    numbers: list[float] | None
    texts: list[str]
    unit: str


@lru_cache(maxsize=4)
def _columns(sweep: Sweep) -> dict[str, _Column]:
    found = {}
    paths = iter(sweep.paths)
    for number, axis in enumerate(sweep.axes):
        for column in zip(*axis.points, strict=True):
            quantities = quantities_of(column)
            if quantities is None:
                found[next(paths)] = _Column(number, None, [_text(node) for node in column], "")
            else:
                numbers, dimension = quantities
                found[next(paths)] = _Column(number, numbers, [], "" if dimension is None else dimension.si)
    return found


def _text(node: Node) -> str:
    value = node.plain()
    return value if isinstance(value, str) else str(value)
