"""One cell by itself: what `tailstep run` does, boiled down to a row.

The way for cells that no kernel takes (`kernel.py` says which): transformers, whose step is a pipeline, links that
remember, and the methods that draw every rank.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.estimate import Estimate
from mc.experiment import run
from mc.sweep.table import PARTS, Row
from mc.sweep.tally import Tally
from mc.sweep.transformers import of_serving, of_training

Advance = Callable[[int], None]


def run_cell(config: ExperimentConfig, cell: int, advance: Advance) -> Row:
    """A cell with noise, by itself.

    Raises:
        InputError: the experiment cannot be built.
    """
    found = run(config, advance=advance)
    tally = Tally.of(found.samples)
    parts = {name: float(np.mean(part)) for name, part in found.parts.items()}
    row = row_of(cell, config, tally, parts, found.realisations)
    if found.training is not None:
        return row.beside(of_training(found.training, config.ranks))
    return row if found.serving is None else row.beside(of_serving(found.serving))


def row_of(
    cell: int,
    config: ExperimentConfig,
    tally: Tally,
    parts: Mapping[str, float],
    realisations: int,
    algorithms: str = "",
) -> Row:
    """The row of a cell whose steps were drawn.

    Args:
        cell: its number.
        config: its configuration.
        tally: of its step times.
        parts: means of the waterfall's parts, seconds.
        realisations: of the cluster.
        algorithms: what the exchange runs.
    """
    estimates = tally.estimates(config.run.confidence)
    metrics: dict[str, float | None] = {}
    for name, estimate in estimates.items():
        metrics[f"step_time_{name}_s"] = estimate.value
        metrics[f"step_time_{name}_s_low"] = _finite(estimate.low)
        metrics[f"step_time_{name}_s_high"] = _finite(estimate.high)
    metrics["step_time_std_s"] = tally.deviation
    metrics |= _of_parts(tally.mean, parts)
    return Row(cell, config.ranks, algorithms, tally.count, realisations, metrics, sums_of(tally))


def quiet_metrics(mean: float, parts: Mapping[str, float]) -> dict[str, float | None]:
    """The numbers of a step without noise: it always takes the same time."""
    found: dict[str, float | None] = {}
    for name in ("mean", "p50", "p95", "p99", "p99_9"):
        found |= {f"step_time_{name}_s{end}": mean for end in ("", "_low", "_high")}
    return {**found, "step_time_std_s": 0.0, **_of_parts(mean, parts)}


def sums_of(tally: Tally) -> dict[str, Any]:
    """What is kept of a tally, by column."""
    counts: NDArray[np.int64] = tally.histogram()
    return {
        "histogram_first": tally.first,
        "histogram": counts.tolist(),
        "top_s": tally.top.tolist(),
        "sum": str(tally.sum),
        "sum_of_squares": str(tally.squares),
    }


def _of_parts(mean: float, parts: Mapping[str, float]) -> dict[str, float | None]:
    known = {f"{name}_s": parts.get(name, 0.0) for name in PARTS}
    if "compute" not in parts:
        # A transformer's: at the peak, and what is lost to it.
        known["compute_s"] = sum(parts.get(name, 0.0) for name in ("ideal_compute", "below_peak"))
    other = max(sum(parts.values()) - sum(known.values()), 0.0)
    share = parts.get("straggler_wait", 0.0) / mean if mean > 0 else 0.0
    # Of the step, what a chip computes that waits for nobody.
    efficiency = known["compute_s"] / mean if mean > 0 else 1.0
    return {**known, "other_s": other, "straggler_share": share, "efficiency": efficiency}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def precision_of(estimate: Estimate) -> float:
    """Half the width of an interval, relative to the value."""
    if estimate.value <= 0:
        return 0.0
    return (estimate.high - estimate.low) / 2 / estimate.value
