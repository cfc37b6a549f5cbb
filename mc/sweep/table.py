"""The table of a sweep: one row per cell, one column per swept path and per number.

Columns of a path hold numbers in SI units where all its values are numbers, else text. A number that a cell does not have
is null. Histograms are lists of counts from bucket `histogram_first` on (`mc.sweep.tally`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mc.config.load_sweep import Sweep
from mc.document import Node
from mc.units import Dimension, UnitError, parse

# The waterfall of a step that computes and then exchanges; what a transformer's has beside it is `other`.
PARTS = ("compute", "straggler_wait", "bandwidth", "latency_floor", "congestion")
STATISTICS = ("mean", "p50", "p95", "p99", "p99_9")
OK, FAILED = "ok", "failed"

METRICS = (
    *(f"step_time_{name}_s{end}" for name in STATISTICS for end in ("", "_low", "_high")),
    "step_time_std_s",
    *(f"{part}_s" for part in (*PARTS, "other")),
    "straggler_share",
    "efficiency",
    "tokens_per_s",
    "mfu",
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


def schema_of(sweep: Sweep) -> pa.Schema:
    """The columns of a sweep's table."""
    swept = [
        pa.field(path, pa.string() if numbers is None else pa.float64())
        for path, numbers in _columns(sweep).items()
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
    schema = schema_of(sweep)
    columns: dict[str, Any] = {
        "cell": [row.cell for row in rows],
        "status": [OK if row.error is None else FAILED for row in rows],
        "error": [row.error for row in rows],
        "ranks": [row.ranks for row in rows],
        "algorithms": [row.algorithms for row in rows],
        "samples": [row.samples for row in rows],
        "realisations": [row.realisations for row in rows],
        **{name: [row.metrics.get(name) for row in rows] for name in METRICS},
        **{each.name: [row.sums.get(each.name) for row in rows] for each in _SUMS},
        **coordinates(sweep, [row.cell for row in rows]),
    }
    return pa.table({name: pa.array(columns[name], schema.field(name).type) for name in schema.names}, schema)


def coordinates(sweep: Sweep, cells: Sequence[int]) -> dict[str, list[Any]]:
    """The value of each path in each cell, as the columns hold it."""
    columns = _columns(sweep)
    places = [sweep.place(cell) for cell in cells]
    found: dict[str, list[Any]] = {}
    paths = iter(sweep.paths)
    for number, axis in enumerate(sweep.axes):
        for position in range(len(axis.paths)):
            path = next(paths)
            numbers = columns[path]
            if numbers is None:
                numbers = [_text(point[position]) for point in axis.points]
            found[path] = [numbers[place[number]] for place in places]
    return found


def _columns(sweep: Sweep) -> dict[str, list[float] | None]:
    """The points of each path as numbers in SI units; None where one is none."""
    found: dict[str, list[float] | None] = {}
    paths = iter(sweep.paths)
    for axis in sweep.axes:
        for position in range(len(axis.paths)):
            found[next(paths)] = _numbers([point[position] for point in axis.points])
    return found


def _numbers(nodes: Sequence[Node]) -> list[float] | None:
    values = [node.value for node in nodes]
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in values):
        return [float(each) for each in values if isinstance(each, int | float)]
    for dimension in Dimension:
        try:
            return [parse(each, dimension) for each in values if isinstance(each, str)]  # one kind, or none
        except UnitError:
            continue
    return None


def _text(node: Node) -> str:
    value = node.plain()
    return value if isinstance(value, str) else str(value)
