"""The two tables of a run: one row per sampled step, and one row per reported number.

`steps` has realisation, step, step_time_s and a `<part>_s` column for each part of the waterfall. `summary`
is tidy: metric, value, low, high, unit, where a null bound means that the samples give none.
"""

import math
import re

import numpy as np
import pyarrow as pa

from mc.estimate import QUANTILES, Estimate, Estimates, Part, SlowestRank, Waterfall
from mc.results.record import RunResult

SUMMARY = pa.schema(
    [
        pa.field("metric", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("unit", pa.string(), nullable=False),
    ]
)


def column_of(part: str) -> str:
    """Column name of a waterfall part: `straggler wait` -> `straggler_wait_s`."""
    return re.sub(r"\W+", "_", part.strip().lower()) + "_s"


def steps_table(result: RunResult) -> pa.Table:
    """One row per sampled step, in the order of the samples.

    Raises:
        ValueError: if two parts would share a column.
    """
    shape = result.samples.shape
    columns = {
        "realisation": np.repeat(np.arange(shape[0], dtype=np.int32), shape[1]),
        "step": np.tile(np.arange(shape[1], dtype=np.int32), shape[0]),
        "step_time_s": result.samples.ravel(),
    }
    for part, times in result.parts.items():
        column = column_of(part)
        if column in columns:
            raise ValueError(
                f"expected parts with different column names; got {part!r}, whose column {column} is taken"
            )
        columns[column] = np.broadcast_to(times, shape).ravel()
    return pa.table(columns)


def summary_table(result: RunResult) -> pa.Table:
    """One row per reported number."""
    estimates, slowest = result.estimates, result.slowest_rank
    rows = [(f"step_time.{name}", found, "s") for name, found in estimates.items()]
    for part in result.waterfall.parts:
        rows.append((f"waterfall.{part.name}", part.time, "s"))
        rows.append((f"waterfall_share.{part.name}", _exact(part.share), "ratio"))
    rows += [
        ("slowest_rank.wait", slowest.wait, "s"),
        ("slowest_rank.share", slowest.share, "ratio"),
        ("slowest_rank.chip_hours_per_hour", slowest.chip_hours_per_hour, "chip-hours/hour"),
        ("ideal_network.step_time", _exact(result.ideal_step_time), "s"),
        ("ideal_network.slowdown", _exact(result.slowdown), "ratio"),
        ("samples_per_s", _exact(result.samples_per_s), "1/s"),
    ]
    rows += [
        (f"effective_samples.{name}", _exact(size), "samples")
        for name, size in estimates.effective_samples.items()
    ]
    return pa.Table.from_pylist(
        [
            {
                "metric": metric,
                "value": found.value,
                "low": found.low if math.isfinite(found.low) else None,
                "high": found.high if math.isfinite(found.high) else None,
                "unit": unit,
            }
            for metric, found, unit in rows
        ],
        schema=SUMMARY,
    )


def samples_of(
    steps: pa.Table, realisations: int, parts: list[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Samples and parts of shape (realisations, steps) from the steps table."""

    def grid(column: str) -> np.ndarray:
        return steps.column(column).to_numpy().reshape(realisations, -1)

    return grid("step_time_s"), {part: grid(column_of(part)) for part in parts}


def estimates_of(
    summary: pa.Table, confidence: float, samples: int, realisations: int
) -> tuple[Estimates, Waterfall, SlowestRank, float]:
    """Estimates, waterfall, slowest rank and ideal step time from the summary table."""
    found = {
        row["metric"]: Estimate(
            row["value"],
            -math.inf if row["low"] is None else row["low"],
            math.inf if row["high"] is None else row["high"],
        )
        for row in summary.to_pylist()
    }
    names = ("mean", *QUANTILES)
    estimates = Estimates(
        **{name: found[f"step_time.{name}"] for name in names},
        confidence=confidence,
        samples=samples,
        realisations=realisations,
        effective_samples={name: found[f"effective_samples.{name}"].value for name in names},
    )
    prefix = "waterfall."
    parts = tuple(
        Part(metric.removeprefix(prefix), time, found["waterfall_share." + metric.removeprefix(prefix)].value)
        for metric, time in found.items()
        if metric.startswith(prefix)
    )
    slowest = SlowestRank(
        found["slowest_rank.wait"], found["slowest_rank.share"], found["slowest_rank.chip_hours_per_hour"]
    )
    return estimates, Waterfall(parts), slowest, found["ideal_network.step_time"].value


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
