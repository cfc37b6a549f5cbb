"""Ways to carry out a collective, compared: for people a table, for programs JSON.

Without a distribution a way has one time, the floor; with one it has a mean and quantiles, each with an
interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from mc.estimate import Estimates
from mc.units import Dimension, format_quantity

_DIGITS = 4
_METHODS = {
    "fixed": "nothing is random",
    "schedule": "message by message",
    "growth": "rounds run, rest extrapolated",
    "tree": "law of the switch tree",
    "barriers": "a barrier per tier",
}


@dataclass(frozen=True)
class CollectiveLine:
    """One way, and what it takes.

    Attributes:
        algorithm: its name.
        protocol: of the links.
        floor: seconds with idle links.
        algorithm_bandwidth: size/floor, bytes/s; None where nothing takes any time.
        bus_bandwidth: as nccl-tests defines it, bytes/s; None likewise.
        rounds: messages (or switch hops) one after the other.
        bytes_per_rank: what a rank sends.
        times: mean and quantiles under noise, seconds; None for the floor alone.
        method: how they were found.
        relative_error: of the mean by the method itself, beside sampling; None where it is not known.
        samples_wanted: how many trials were asked for; dear schedules run fewer.
        model: interval of the floor from figures that a calibration left uncertain, seconds; None where all are known.
    """

    algorithm: str
    protocol: str
    floor: float
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    rounds: int
    bytes_per_rank: float
    times: Estimates | None = None
    method: str = "fixed"
    relative_error: float | None = 0.0
    samples_wanted: int = 0
    model: tuple[float, float] | None = None


def collective_json(line: CollectiveLine) -> dict[str, Any]:
    """A way as plain data, SI units in the keys; `time_s` is a number, or with a distribution an object."""
    found: dict[str, Any] = {
        "algorithm": line.algorithm,
        "protocol": line.protocol,
        "time_s": line.floor,
        "algbw_Bps": line.algorithm_bandwidth,
        "busbw_Bps": line.bus_bandwidth,
        "rounds": line.rounds,
        "bytes_per_rank": line.bytes_per_rank,
    }
    if line.model is not None:
        found["model_s"] = list(line.model)
    if line.times is None:
        return found
    estimates = dict(line.times.items())
    found["time_s"] = {
        **{name: each.value for name, each in estimates.items()},
        "ci": {
            "level": line.times.confidence,
            **{name: [_finite(each.low), _finite(each.high)] for name, each in estimates.items()},
        },
    }
    scale = line.floor / line.times.p50.value if line.times.p50.value > 0 else None
    for key in ("algbw_Bps", "busbw_Bps"):
        # Of the median time.
        found[key] = None if scale is None or found[key] is None else found[key] * scale
    return found | {
        "floor_s": line.floor,
        "method": line.method,
        "method_relative_error": line.relative_error,
        "samples": line.times.samples,
    }


def collective_table(title: str, lines: Sequence[CollectiveLine], *, best: str) -> Table:
    """All ways, in the order given; `best` is said of the first."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True)
    # Where no link has protocols the column would say nothing.
    protocols = any(line.protocol != "none" for line in lines)
    if protocols:
        table.add_column("protocol", no_wrap=True)
    random = any(line.times is not None for line in lines)
    fixed = (
        "time",
        *(("model, 95 %",) if _is_uncertain(lines) else ()),
        "algbw",
        "busbw",
        "rounds",
        "bytes/rank",
    )
    for name in ("floor", "mean", "p50", "p99", "busbw") if random else fixed:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("how" if random else "", no_wrap=True)
    for place, line in enumerate(lines):
        first = place == 0 and len(lines) > 1
        mark = best if first else ""
        cells = (
            _random_cells(line, mark) if random else _fixed_cells(line, mark, uncertain=_is_uncertain(lines))
        )
        names = (line.algorithm, line.protocol) if protocols else (line.algorithm,)
        table.add_row(*names, *cells, style="bold" if first else None)
    return table


def _is_uncertain(lines: Sequence[CollectiveLine]) -> bool:
    return any(line.model is not None for line in lines)


def _fixed_cells(line: CollectiveLine, mark: str, *, uncertain: bool) -> tuple[str, ...]:
    ends = [] if line.model is None else [_quantity(each, Dimension.TIME) for each in line.model]
    return (
        _quantity(line.floor, Dimension.TIME),
        *((" .. ".join(ends) or "-",) if uncertain else ()),
        _quantity(line.algorithm_bandwidth, Dimension.BANDWIDTH),
        _quantity(line.bus_bandwidth, Dimension.BANDWIDTH),
        f"{line.rounds:,}",
        _quantity(line.bytes_per_rank, Dimension.SIZE),
        mark,
    )


def _random_cells(line: CollectiveLine, mark: str) -> tuple[str, ...]:
    times = line.times
    assert times is not None
    bus = collective_json(line)["busbw_Bps"]
    how = _METHODS[line.method]
    if line.method == "growth" and line.relative_error is not None:
        how += f" (within {100 * line.relative_error:.2g} %)"
    if times.samples < line.samples_wanted:
        how += f", {times.samples:,} samples"
    return (
        _quantity(line.floor, Dimension.TIME),
        *(_quantity(each.value, Dimension.TIME) for each in (times.mean, times.p50, times.p99)),
        _quantity(bus, Dimension.BANDWIDTH),
        f"{how}; {mark}" if mark else how,
    )


def _quantity(value: float | None, dimension: Dimension) -> str:
    return "-" if value is None else format_quantity(value, dimension, digits=_DIGITS)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
