"""A batch of cells: a pure function of the sweep and the cells' numbers.

Nothing else goes in, neither the other batches nor the number of devices, so whoever evaluates a batch gets the same
rows. A cell that fails says why in its row and disturbs no other.
"""

from collections.abc import Callable, Sequence

import jax
import pyarrow as pa

from mc.config import ExperimentConfig
from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.sweep.distributed import union
from mc.sweep.drawn import drawn_rows
from mc.sweep.kernel import Devices, Kernel, kernels_of
from mc.sweep.one import run_cell
from mc.sweep.quiet_table import quiet_table
from mc.sweep.steps import pieces_of, reason_alone
from mc.sweep.store import Batch
from mc.sweep.table import Row, failed_row, table_of

Advance = Callable[[int], None]
Log = Callable[[str], None]
# Cells of a batch, at most: enough to fill a call, few enough to lose little when a machine goes.
QUIET, DRAWN = 1 << 16, 64


def batches_of(sweep: Sweep) -> list[Batch]:
    """The batches of a sweep, as even as can be; how it is cut depends on nothing else.

    A small one at the end would have shapes of its own, for which all would be compiled again, and shards would not
    have equal work.
    """
    count = -(-len(sweep) // (QUIET if sweep.config.samples == 0 else DRAWN))
    size = -(-len(sweep) // max(count, 1))
    return [Batch(start, min(start + size, len(sweep))) for start in range(0, len(sweep), max(size, 1))]


def evaluate(
    sweep: Sweep,
    batch: Batch,
    *,
    only: Sequence[int] | None = None,
    advance: Advance = lambda count: None,
    log: Log = lambda text: None,
    devices: Devices = None,
) -> pa.Table:
    """The rows of a batch.

    Args:
        sweep: which.
        batch: its cells.
        only: of them, those that are wanted; all if left out. Rows are the same as if all were.
        advance: told how many more cells are done.
        log: told what is compiled, and why.
        devices: to draw on; all of this process by default.
    """
    if sweep.config.samples == 0:
        table = quiet_table(sweep, batch.start, batch.stop, log)
        advance(batch.stop - batch.start)
        return table if only is None else table.take(pa.array([cell - batch.start for cell in only]))
    return table_of(sweep, _drawn(sweep, batch, only, advance, log, devices))


def _drawn(
    sweep: Sweep,
    batch: Batch,
    only: Sequence[int] | None,
    advance: Advance,
    log: Log,
    devices: Devices,
) -> list[Row]:
    configs: dict[int, ExperimentConfig] = {}
    failed: dict[int, str] = {}
    for cell in range(batch.start, batch.stop):
        try:
            configs[cell] = config_of(sweep, cell)
        except InputError as error:
            failed[cell] = str(error)
    alone = {cell: reason for cell, config in configs.items() if (reason := reason_alone(config))}
    shared = {cell: config for cell, config in configs.items() if cell not in alone}
    pieces, more, broken = pieces_of(shared, log)
    alone |= more
    failed |= broken
    kernels = kernels_of(pieces)
    if kernels:
        log(_told(kernels))
    for reason in dict.fromkeys(alone.values()):
        log(f"{sum(each == reason for each in alone.values())} cells one by one: {reason}")
    wanted = set(configs) | set(failed) if only is None else set(only)
    rows = {cell: failed_row(cell, failed[cell]) for cell in failed if cell in wanted}
    advance(len(rows))
    for kernel in kernels:
        for row in drawn_rows(kernel, configs, sweep.config, only=only, advance=advance, devices=devices):
            rows[row.cell] = row
    single = sorted(wanted & set(alone))
    # Where several processes have joined, each takes every n-th.
    own = single[jax.process_index() :: jax.process_count()] if single else []
    drawn = {}
    for cell in own:
        drawn[cell] = _row(configs[cell], cell)
        advance(jax.process_count())
    if single:
        rows |= union(drawn)
    return [rows[cell] for cell in sorted(rows)]


def _told(kernels: Sequence[Kernel]) -> str:
    counts = ", ".join(f"{len(kernel.cells)}" for kernel in kernels)
    if len(kernels) == 1:
        return f"1 kernel for {counts} cells: they differ in numbers alone"
    return f"{len(kernels)} kernels for {counts} cells: the laws of their noise differ"


def config_of(sweep: Sweep, cell: int) -> ExperimentConfig:
    """The configuration of a cell, with what the sweep says of samples and seeds.

    Raises:
        InputError: the cell cannot be.
    """
    config = sweep.experiment(cell)
    run = config.run
    if sweep.config.samples:
        run = run.model_copy(update={"samples": sweep.config.samples})
    if sweep.config.seeds == "own":
        # Odd and large, so that neighbours have seeds far apart.
        seed = (run.seed + (cell + 1) * 0x9E3779B97F4A7C15) % 2**63
        run = run.model_copy(update={"seed": seed})
    return config.model_copy(update={"run": run})


def _row(config: ExperimentConfig, cell: int) -> Row:
    try:
        return run_cell(config, cell, lambda count: None)
    except (InputError, ValueError, ArithmeticError) as error:
        return failed_row(cell, str(error) or type(error).__name__)
