"""A calibration for people: what was free, what was found, how far off it is; and the same as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.units import Dimension, format_quantity

_OUTCOMES = {
    "flat": "ended where the loss is flat",
    "corner": "ended in a corner, where ways that take equally long meet and no step leads down",
    "unfinished": "ran out of steps (`--steps`)",
}


@dataclass(frozen=True)
class FittedFigure:
    """One parameter.

    Attributes:
        name: its path.
        paths: all places of the configuration that have it.
        dimension: for printing.
        prior: the centre of the prior.
        low: end of the interval.
        value: fitted.
        high: end of the interval.
        known_from: `data`, `prior` or `both`.
    """

    name: str
    paths: tuple[str, ...]
    dimension: Dimension
    prior: float
    low: float
    value: float
    high: float
    known_from: str


@dataclass(frozen=True)
class FittedCurve:
    """What was fitted, and how it came out.

    Attributes:
        label: for people.
        sizes: bytes.
        measured: seconds.
        prior: seconds, predicted before the fit.
        predicted: seconds, after it.
        bus_factor: bus bandwidth over size per time.
    """

    label: str
    sizes: Sequence[float]
    measured: Sequence[float]
    prior: Sequence[float]
    predicted: Sequence[float]
    bus_factor: float = 1.0


@dataclass(frozen=True)
class CalibrationReport:
    """All that is said of a fit.

    Attributes:
        cluster: its name.
        level: of the intervals.
        figures: the parameters.
        curves: the data.
        scatter: relative, of measurements around the model.
        held_out: median and mean error on sizes held out, and those of a plain line; None without.
        losses: of all starts, the least first.
        gradient: largest entry at the best.
        steps: of the best descent.
        outcome: `flat`, `corner` or `unfinished`.
        agreeing: how many starts found the same loss.
        known: what the data tell apart, in sentences.
    """

    cluster: str
    level: float
    figures: Sequence[FittedFigure]
    curves: Sequence[FittedCurve]
    scatter: float
    held_out: tuple[float, float, float, float] | None
    losses: Sequence[float]
    gradient: float
    steps: int
    outcome: str
    agreeing: int
    known: Sequence[str]


def calibration_json(report: CalibrationReport) -> dict[str, Any]:
    """As plain data, in SI units."""
    plain = asdict(report)
    for each in plain["figures"]:
        each["dimension"] = each["dimension"].value
    keys = ("median", "mean", "line_median", "line_mean")
    plain["held_out"] = None if report.held_out is None else dict(zip(keys, report.held_out, strict=True))
    return plain


def calibration_from_json(found: Mapping[str, Any]) -> CalibrationReport:
    """The inverse of `calibration_json`."""
    held_out = found["held_out"]
    figures = [
        FittedFigure(**{**each, "paths": tuple(each["paths"]), "dimension": Dimension(each["dimension"])})
        for each in found["figures"]
    ]
    return CalibrationReport(
        **{
            **found,
            "figures": figures,
            "curves": [FittedCurve(**each) for each in found["curves"]],
            "held_out": None if held_out is None else tuple(held_out.values()),
        }
    )


def calibration_text(report: CalibrationReport) -> Group:
    """As tables and sentences."""
    parts: list[Any] = [
        figures_table(report.cluster, report.level, report.figures),
        Text(),
        _decades(report),
        Text(),
    ]
    if report.held_out is not None:
        median, mean, line_median, line_mean = (f"{100 * each:.1f} %" for each in report.held_out)
        parts.append(
            Text(
                f"Sizes held out: predicted within {median} (median), {mean} (mean); by a plain latency-bandwidth line "
                f"{line_median}, {line_mean}."
            )
        )
    parts.append(Text(ending(report)))
    parts += [Text(line) for line in report.known]
    return Group(*parts)


def ending(report: CalibrationReport) -> str:
    """How the fit ended, in sentences."""
    ended = how_it_ended(report.outcome, report.losses, report.agreeing, report.gradient, report.steps)
    return f"{ended}. Measurements scatter by {100 * report.scatter:.1f} % around it."


def how_it_ended(outcome: str, losses: Sequence[float], agreeing: int, gradient: float, steps: int) -> str:
    """How descents ended, without a full stop."""
    spread = f"{losses[0]:.3g} to {losses[-1]:.3g}" if len(losses) > 1 else f"{losses[0]:.3g}"
    return (
        f"The fit {_OUTCOMES[outcome]}: loss {spread} over {len(losses)} starts, {agreeing} of them at the least; gradient "
        f"{gradient:.1e} after {steps} steps"
    )


def figures_table(name: str, level: float, figures: Sequence[FittedFigure]) -> Table:
    """Every figure that moved, with its prior, its interval, and where it is known from."""
    table = Table(box=None, title=f"{name}, calibrated", title_justify="left")
    table.add_column("parameter", overflow="fold")
    for heading in ("prior", "fitted", f"{100 * level:.0f} % interval", "known from"):
        table.add_column(heading, justify="left" if heading == "known from" else "right", no_wrap=True)
    moved = [each for each in figures if each.known_from != "prior"]
    for each in moved:
        low, prior, value, high = (
            format_quantity(number, each.dimension, digits=3)
            for number in (each.low, each.prior, each.value, each.high)
        )
        table.add_row(each.name, str(prior), str(value), f"{low} .. {high}", each.known_from)
    left = len(figures) - len(moved)
    if left:
        table.caption = f"{left} more free figures stay near their priors (`--json` lists them)"
        table.caption_justify = "left"
    return table


def _decades(report: CalibrationReport) -> Table:
    table = Table(box=None, title="|predicted/measured - 1|, medians by size", title_justify="left")
    for heading in ("sizes", "rows", "before", "fitted", "bias"):
        table.add_column(heading, justify="left" if heading == "sizes" else "right")
    for row in decade_rows(report):
        table.add_row(*row)
    return table


def decade_rows(report: CalibrationReport) -> list[tuple[str, ...]]:
    """Errors by decades of sizes: from which on, how many rows, medians before and after the fit, the median with its sign."""
    sizes, before, after = (
        np.concatenate([np.asarray(each, float) for each in group])
        for group in (
            [curve.sizes for curve in report.curves],
            [np.asarray(curve.prior) / np.asarray(curve.measured) - 1 for curve in report.curves],
            [np.asarray(curve.predicted) / np.asarray(curve.measured) - 1 for curve in report.curves],
        )
    )
    decades = np.floor(np.log10(sizes) + 1e-9).astype(int)
    found = []
    for decade in sorted(set(decades.tolist())):
        own = decades == decade
        found.append(
            (
                f"from {format_quantity(float(10**decade), Dimension.SIZE)}",
                str(int(own.sum())),
                f"{100 * np.median(np.abs(before[own])):.1f} %",
                f"{100 * np.median(np.abs(after[own])):.1f} %",
                f"{100 * np.median(after[own]):+.1f} %",
            )
        )
    return found
