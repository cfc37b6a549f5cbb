"""The rows of cells without noise: structures by the array, whatever else is left one by one."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mc.config.load_sweep import FULLY_CHECKED, Sweep
from mc.document import ConfigError
from mc.errors import InputError
from mc.sweep.layout import groups_by_layout
from mc.sweep.leaves import Group, groups_of
from mc.sweep.quiet import Quiet, quiet
from mc.sweep.quiet_transformer import FEW, quiet_trainings, quiet_transformer
from mc.sweep.table import OK, PARTS, STATISTICS, failed_row, table_of, table_with

Log = Callable[[str], None]


def quiet_table(sweep: Sweep, start: int, stop: int, log: Log) -> pa.Table:
    """The rows of the cells from `start` to `stop`."""
    groups, alone = ([], list(range(start, stop)))
    if len(sweep) > FULLY_CHECKED:
        groups, alone = groups_by_layout(sweep, start, stop)
    configs, failed = {}, []
    for cell in alone:
        try:
            configs[cell] = sweep.experiment(cell)
        except ConfigError as error:
            failed.append(failed_row(cell, str(error)))
    tables = [table_of(sweep, failed)]
    for group in [*groups, *groups_of(configs)]:
        tables.append(_of_group(sweep, group, log))
    table = pa.concat_tables(tables)
    return table.take(pa.array(np.argsort(table.column("cell").to_numpy())))


def _of_group(sweep: Sweep, group: Group, log: Log) -> pa.Table:
    is_transformer = group.template.model.transformer is not None
    try:
        if is_transformer and len(group.cells) < FEW:
            return _one_by_one(sweep, group)
        try:
            if is_transformer:
                return table_of(sweep, quiet_trainings(group))
            return _rows(sweep, group, quiet(group))
        except TypeError as error:
            # What JAX says where a program asks for the value of a traced number.
            log(f"{len(group.cells):,} cells one by one: {str(error).splitlines()[0]}")
            return _one_by_one(sweep, group)
    except InputError as error:
        return table_of(sweep, [failed_row(int(cell), str(error)) for cell in group.cells])


def _one_by_one(sweep: Sweep, group: Group) -> pa.Table:
    tables = []
    for cell in group.cells.tolist():
        try:
            config = sweep.experiment(cell)
            if config.model.transformer is not None:
                tables.append(table_of(sweep, [quiet_transformer(config, cell)]))
            else:
                own = groups_of({cell: config})[0]
                tables.append(_rows(sweep, own, quiet(own)))
        except InputError as error:
            tables.append(table_of(sweep, [failed_row(cell, str(error))]))
    return pa.concat_tables(tables)


def _rows(sweep: Sweep, group: Group, found: Quiet) -> pa.Table:
    mean = np.sum(list(found.parts.values()), axis=0)
    count = len(mean)
    columns: dict[str, NDArray | Sequence] = {
        f"step_time_{name}_s{end}": mean for name in STATISTICS for end in ("", "_low", "_high")
    }
    columns |= {f"{name}_s": found.parts[name] for name in PARTS}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["straggler_share"] = np.where(mean > 0, found.parts["straggler_wait"] / mean, 0.0)
        columns["efficiency"] = np.where(mean > 0, found.parts["compute"] / mean, 1.0)
    zeros = np.zeros(count, np.int64)
    columns |= {
        "status": np.full(count, OK),
        "ranks": np.full(count, group.template.ranks),
        "algorithms": found.algorithms(),
        "samples": zeros,
        "realisations": zeros,
        "step_time_std_s": np.zeros(count),
        "other_s": np.zeros(count),
    }
    return table_with(sweep, group.cells, columns)
