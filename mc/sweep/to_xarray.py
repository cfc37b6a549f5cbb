"""The rows of a sweep as an `xarray.Dataset`: dimensions where cells are a full grid, else one of cells.

xarray is an extra (`pip install 'tailstep[xarray]'`); nothing else in the package needs it.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.sweep.table import UNIT

if TYPE_CHECKING:
    import xarray

# Units of figures, by the ends of their names; more than one unit of time is never used.
_UNITS = (
    ("per_s", "1/s"),
    ("per_s_per_chip", "1/s"),
    ("_s", "s"),
    ("_s_low", "s"),
    ("_s_high", "s"),
    ("_B", "B"),
)


def to_xarray(sweep: Sweep, table: pa.Table) -> "xarray.Dataset":
    """The rows that a sweep gave, with labelled axes.

    Args:
        sweep: that was run.
        table: its rows, as `mc.run_sweep` or any reader of Parquet gives them, in any order.

    Returns:
        One variable per column; histograms, the largest steps and exact sums, which are lists and long integers, stay in
        Parquet. A dimension per path where every axis has one path and distinct values and no cell is missing; else
        `cell`, beside which the paths are coordinates. `attrs["units"]` where there is a unit.

    Raises:
        InputError: xarray is not installed, or the rows are those of another sweep.
    """
    if find_spec("xarray") is None:
        raise InputError(
            "to_xarray: needs xarray, which is not installed; `pip install 'tailstep[xarray]'` gets it"
        )
    import xarray

    missing = [name for name in ("cell", *sweep.paths) if name not in table.column_names]
    if missing:
        raise InputError(f"to_xarray: expected rows of this sweep; got none with a column `{missing[0]}`")
    table = table.sort_by("cell")
    cells = table.column("cell").to_numpy()
    if len(np.unique(cells)) != len(cells) or (len(cells) and not 0 <= cells[0] <= cells[-1] < len(sweep)):
        raise InputError(f"to_xarray: expected each of {len(sweep):,} cells at most once; got other rows")
    columns = {
        field.name: _values(table.column(field.name))
        for field in table.schema
        if not pa.types.is_list(field.type) and field.name not in ("sum", "sum_of_squares")
    }
    units = {field.name: _unit(field) for field in table.schema}
    paths = dict.fromkeys(sweep.paths)
    axes = _axes(sweep, columns) if len(cells) == len(sweep) else None
    if axes is None:
        shape, dimensions = (len(cells),), ("cell",)
        coordinates = {name: ("cell", columns[name]) for name in ("cell", *paths)}
        left = [name for name in columns if name not in coordinates]
    else:
        shape, dimensions = sweep.shape, tuple(axes)
        coordinates = {name: (name, values) for name, values in axes.items()}
        left = [name for name in columns if name not in coordinates]
    data = xarray.Dataset(
        {name: (dimensions, columns[name].reshape(shape)) for name in left},
        coords=coordinates,
        attrs={"name": sweep.name},
    )
    for name, unit in units.items():
        if unit and name in data.variables:
            data[name].attrs["units"] = unit
    return data


def _axes(sweep: Sweep, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """Path -> values along it; None where an axis has several paths, or one value twice."""
    found = {}
    for place, name in enumerate(sweep.paths):
        if len(sweep.paths) != len(sweep.shape):
            return None
        values = np.moveaxis(columns[name].reshape(sweep.shape), place, 0).reshape(sweep.shape[place], -1)[
            :, 0
        ]
        if len(set(values.tolist())) != len(values):
            return None
        found[name] = values
    return found


def _values(column: Any) -> np.ndarray:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(["" if each is None else each for each in column.to_pylist()], object)
    return np.asarray(column.to_numpy())


def _unit(field: pa.Field) -> str:
    unit = (field.metadata or {}).get(UNIT.encode())
    if unit is not None:
        return unit.decode()
    # The longest end that fits: tokens per second are no seconds.
    fits = [(end, name) for end, name in _UNITS if field.name.endswith(end)]
    return max(fits, key=lambda each: len(each[0]))[1] if fits else ""
