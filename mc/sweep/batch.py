"""A batch of cells: a pure function of the sweep and the cells' numbers.

Nothing else goes in, neither the other batches nor the number of devices, so whoever evaluates a batch gets the same
rows. A cell that fails says why in its row and disturbs no other.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from mc.config import ExperimentConfig
from mc.config.load_sweep import Sweep
from mc.errors import InputError
from mc.sweep.one import run_cell
from mc.sweep.quiet_table import quiet_table
from mc.sweep.store import Batch
from mc.sweep.table import Row, table_of

Advance = Callable[[int], None]
Log = Callable[[str], None]
# Cells of a batch: enough to fill a call, few enough to lose little when a machine goes.
QUIET, DRAWN = 1 << 16, 64


def batches_of(sweep: Sweep) -> list[Batch]:
    """The batches of a sweep; how it is cut depends on nothing else."""
    size = QUIET if sweep.config.samples == 0 else DRAWN
    return [Batch(start, min(start + size, len(sweep))) for start in range(0, len(sweep), size)]


def evaluate(
    sweep: Sweep,
    batch: Batch,
    *,
    only: Sequence[int] | None = None,
    advance: Advance = lambda count: None,
    log: Log = lambda text: None,
) -> pa.Table:
    """The rows of a batch.

    Args:
        sweep: which.
        batch: its cells.
        only: of them, those that are wanted; all if left out. Rows are the same as if all were.
        advance: told how many more cells are done.
        log: told what is compiled, and why.
    """
    if sweep.config.samples == 0:
        table = quiet_table(sweep, batch.start, batch.stop, log)
        advance(batch.stop - batch.start)
        return table if only is None else table.take(pa.array([cell - batch.start for cell in only]))
    rows = []
    for cell in range(batch.start, batch.stop) if only is None else only:
        rows.append(_row(sweep, cell))
        advance(1)
    return table_of(sweep, rows)


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


def _row(sweep: Sweep, cell: int) -> Row:
    try:
        config = config_of(sweep, cell)
        return run_cell(config, cell, lambda count: None)
    except (InputError, ValueError, ArithmeticError) as error:
        return Row(cell, error=" ".join(str(error).split()) or type(error).__name__)
