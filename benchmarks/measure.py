"""How a benchmark measures: what is compared runs in turn, and the median of the ratios is quoted.

Machines drift and are shared, so an absolute time says little about the next run; a ratio of two things timed
one after the other does.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True)
class Finding:
    """One measured figure.

    Attributes:
        name: what was measured.
        value: the figure.
        unit: its unit; `x` for a ratio.
        target: what the project asks of it, as text.
        holds: whether the target is met.
        note: how it was measured.
    """

    name: str
    value: float
    unit: str
    target: str
    holds: bool
    note: str


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call, until its arrays are there."""
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def best_of(function: Callable[[], Any], *, repeats: int) -> float:
    """Shortest of `repeats` calls after one warm-up: the one least disturbed."""
    function()
    return min(seconds(function) for _ in range(repeats))


def ratio(slow: Callable[[], Any], fast: Callable[[], Any], *, repeats: int) -> float:
    """Median over `repeats` of time(slow)/time(fast), timed in turn after one warm-up of each."""
    slow()
    fast()
    return statistics.median(seconds(slow) / seconds(fast) for _ in range(repeats))


def at_least(name: str, value: float, unit: str, least: float, note: str) -> Finding:
    """A figure that should not be below `least`."""
    return Finding(name, value, unit, f">= {least:g}", value >= least, note)


def at_most(name: str, value: float, unit: str, most: float, note: str) -> Finding:
    """A figure that should not be above `most`."""
    return Finding(name, value, unit, f"<= {most:g}", value <= most, note)
