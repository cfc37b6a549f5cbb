"""The rows of cells with noise: rounds of steps until each cell is known well enough.

A *round* is what `tailstep run` draws: the samples of the experiment, over its realisations of the cluster. The first
has the seed's own streams, so it has the numbers of a run; further ones, where a precision is asked for, have streams of
their own, the same for all cells. How many a cell gets depends on that cell alone.

Cells share their random numbers. What they are worth in a comparison is said as (Var A + Var B) / Var(A − B) against the
first cell of the batch: how many times more steps independent numbers would take for the same difference (P. Glasserman,
D. D. Yao, "Some guidelines and guarantees for common random numbers", Management Science 38 (1992)).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.config.sweep import SweepConfig
from mc.random import stream
from mc.step import draw_classes
from mc.step.persistent import Classes
from mc.sweep.kernel import Devices, Kernel, Units, draw, units_per_device
from mc.sweep.one import precision_of, row_of
from mc.sweep.table import Row
from mc.sweep.tally import Tally

Advance = Callable[[int], None]
# Steps of a chunk, as in a run.
_CHUNK = 1 << 16
# A guess at how much is missing aims a little further.
_MARGIN = 1.1


@dataclass
class _Cell:
    """A cell on its way."""

    place: int
    config: ExperimentConfig
    planned: int = 1
    done: int = 0
    tally: Tally | None = None
    parts: dict[str, float] = field(default_factory=dict)
    reduction: float | None = None


def drawn_rows(
    kernel: Kernel,
    configs: Mapping[int, ExperimentConfig],
    sweep: SweepConfig,
    *,
    only: Sequence[int] | None,
    advance: Advance,
    devices: Devices = None,
) -> list[Row]:
    """The rows of a kernel's cells.

    Args:
        kernel: with the cells.
        configs: theirs.
        sweep: says how precise they shall be.
        only: of them, those that are wanted; all if left out.
        advance: told how many more cells are done.
        devices: to draw on; all of this process by default.
    """
    rows = []
    by_shape: dict[tuple[int, int], list[_Cell]] = {}
    for place, cell in enumerate(kernel.cells):
        by_shape.setdefault(_shape(kernel, place, configs[cell]), []).append(_Cell(place, configs[cell]))
    for shape, cells in by_shape.items():
        reference: list[NDArray[np.float64]] = []
        wanted = [cell for cell in cells if only is None or kernel.cells[cell.place] in only]
        if wanted and cells[0] not in wanted:
            # Needed for the comparison.
            wanted = [cells[0], *wanted]
        number = 0
        while active := [cell for cell in wanted if cell.planned > number]:
            _round(kernel, active, shape, number, reference, len(cells), devices)
            number += 1
            for cell in active:
                if cell.planned == number:
                    cell.planned = _further(cell, sweep, shape)
                    advance(cell.planned == number)
        rows += [_row(kernel, cell) for cell in wanted if only is None or kernel.cells[cell.place] in only]
    return rows


def _shape(kernel: Kernel, place: int, config: ExperimentConfig) -> tuple[int, int]:
    """Realisations, and steps of each, of a round."""
    persistent = bool(kernel.slots.compute.persistent)
    realisations = min(config.run.realisations, config.run.samples) if persistent else 1
    return realisations, -(-config.run.samples // realisations)


def _round(
    kernel: Kernel,
    cells: Sequence[_Cell],
    shape: tuple[int, int],
    number: int,
    reference: list[NDArray[np.float64]],
    in_all: int,
    devices: Devices,
) -> None:
    realisations, steps = shape
    size = min(_CHUNK, steps)
    chunks = -(-steps // size)
    each = realisations * chunks
    realisation, chunk = (axis.ravel() for axis in np.indices((realisations, chunks)))
    keys = [_key(cell.config, number) for cell in cells]
    units = Units(
        np.repeat([cell.place for cell in cells], each),
        np.repeat([np.asarray(jax.random.key_data(key)) for key in keys], each, axis=0),
        np.tile(realisation, len(cells)),
        np.tile(chunk, len(cells)),
        _classes(kernel, cells, keys, realisations, np.tile(realisation, len(cells)), each),
    )
    per_device = units_per_device(in_all * each, size)
    buffers: dict[int, tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
    for call, compute, congestion in draw(kernel, units, size, per_device, devices):
        for row, unit in enumerate(call):
            owner, part = divmod(int(unit), each)
            if owner not in buffers:
                buffers[owner] = (np.empty((each, size), np.float32), np.empty((each, size), np.float32))
            buffers[owner][0][part], buffers[owner][1][part] = compute[row], congestion[row]
            if part == each - 1:
                drawn = [
                    one.reshape(realisations, chunks * size)[:, :steps].astype(np.float64)
                    for one in buffers.pop(owner)
                ]
                _take(kernel, cells[owner], drawn[0], drawn[1], reference)


def _take(
    kernel: Kernel,
    cell: _Cell,
    compute: NDArray[np.float64],
    congestion: NDArray[np.float64],
    reference: list[NDArray[np.float64]],
) -> None:
    alone, place = kernel.alone[cell.place], cell.place
    transfer, latency = kernel.transfer[place], kernel.latency[place]
    samples = alone + (compute - alone) + transfer + latency + congestion
    own = Tally.of(samples)
    parts = {
        "compute": float(alone),
        "straggler_wait": float((compute - alone).mean()),
        "bandwidth": float(transfer),
        "latency_floor": float(latency),
        "congestion": float(congestion.mean()),
    }
    if cell.tally is None:
        cell.tally, cell.parts = own, parts
        if not reference:
            reference.append(samples)
        else:
            cell.reduction = _reduction(samples, reference[0])
    else:
        before = cell.done
        cell.parts = {
            name: (before * cell.parts[name] + value) / (before + 1) for name, value in parts.items()
        }
        cell.tally = cell.tally + own if len(samples) == 1 else cell.tally.beside(own)
    cell.done += 1


def _reduction(one: NDArray[np.float64], two: NDArray[np.float64]) -> float | None:
    between = float((one - two).var())
    return (float(one.var()) + float(two.var())) / between if between > 0 else None


def _further(cell: _Cell, sweep: SweepConfig, shape: tuple[int, int]) -> int:
    """How many rounds a cell gets in all, as far as can be told now."""
    target = sweep.target
    assert cell.tally is not None
    if target is None:
        return cell.done
    level, name = target
    reached = precision_of(cell.tally.estimates(cell.config.run.confidence)[name])
    if reached <= level:
        return cell.done
    most = max(1, sweep.budget // (shape[0] * shape[1]))
    factor = min((reached / level) ** 2 * _MARGIN, 2.0) if math.isfinite(reached) else 2.0
    return max(cell.done, min(math.ceil(cell.done * factor), most))


def _key(config: ExperimentConfig, number: int) -> jax.Array:
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    return key if number == 0 else stream(key, f"round {number}")


def _classes(
    kernel: Kernel,
    cells: Sequence[_Cell],
    keys: Sequence[jax.Array],
    realisations: int,
    realisation: NDArray[np.int64],
    each: int,
) -> Classes | None:
    """The persistent slowness and kinds of chips that each unit meets; short lists are filled up with classes of nobody."""
    first = kernel.slots.compute
    if not (first.persistent or first.kinds):
        return None
    found = []
    for cell, key in zip(cells, keys, strict=True):
        own = kernel.compute(cell.place)
        found.append(
            draw_classes(own.persistent, cell.config.ranks, key, realisations, unit=own.unit, kinds=own.kinds)
        )
    most = max(np.shape(one.counts)[1] for one in found)
    owner = np.repeat(np.arange(len(cells)), each)

    def gathered(arrays: Sequence[NDArray], value: float) -> NDArray[np.float32]:
        filled = np.stack([_filled(np.asarray(array, np.float32), most, value) for array in arrays])
        return filled[owner, realisation]

    # The log-survival of a factor that nobody asks for.
    half = math.log(0.5) if any(entry.spread is not None for entry in first.persistent) else 0.0
    return Classes(
        gathered([np.asarray(one.choices) for one in found], half),
        gathered([np.asarray(one.counts) for one in found], 0.0),
        None if found[0].fixed is None else gathered([np.asarray(one.fixed) for one in found], 1.0),
    )


def _filled(array: NDArray[np.float32], classes: int, value: float) -> NDArray[np.float32]:
    missing = classes - array.shape[1]
    widths = [(0, 0), (0, missing), *[(0, 0)] * (array.ndim - 2)]
    return np.pad(array, widths, constant_values=value)


def _row(kernel: Kernel, cell: _Cell) -> Row:
    assert cell.tally is not None
    realisations = len(cell.tally.counts)
    row = row_of(
        kernel.cells[cell.place],
        cell.config,
        cell.tally,
        cell.parts,
        realisations,
        kernel.algorithms[cell.place],
    )
    return Row(**{**vars(row), "metrics": {**row.metrics, "variance_reduction": cell.reduction}})
