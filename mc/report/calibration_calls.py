"""A cluster whose links' noise was fitted to single calls: for people, and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.report.calibration import HeldOutScore
from mc.report.fit_reports import Ending, FittedFigure, figures_table, plain_report
from mc.report.times import duration
from mc.units import Dimension, format_quantity

KIND = "calls"


@dataclass(frozen=True)
class FittedSeries:
    """Calls of one collective on one group at one size, measured and forecast.

    Attributes:
        label: for people.
        source: the file.
        size: bytes.
        calls: how many.
        levels: of the quantiles.
        measured: at each level (low, itself, high), seconds.
        forecast: at each level (low, fitted, high), seconds.
        distance: between the distributions, Kolmogorov's.
        far: whether that is more than chance, for independent calls.
        factor: fitted idle time over that of the cluster.
        held_out: whether the fit has not seen it.
    """

    label: str
    source: str
    size: float
    calls: int
    levels: Sequence[float]
    measured: Sequence[Sequence[float]]
    forecast: Sequence[Sequence[float]]
    distance: float
    far: bool
    factor: float
    held_out: bool


@dataclass(frozen=True)
class CallsReport(Ending):
    """All that is said of a fit.

    Attributes:
        cluster: its name.
        level: of the intervals.
        figures: the parameters.
        series: the data.
        held_out: errors of p50 and p99 of what was held out; None without.
        closed: whether what was fitted has a likelihood; else a score was.
        calls: how many there were to be fitted.
        fitted: how many of them were.
        widened: how many times wider intervals are than those of independent calls.
        known: what the data tell apart, in sentences.
    """

    cluster: str
    level: float
    figures: Sequence[FittedFigure]
    series: Sequence[FittedSeries]
    held_out: HeldOutScore | None
    closed: bool
    calls: int
    fitted: int
    widened: float
    known: Sequence[str]


def calls_json(report: CallsReport) -> dict[str, Any]:
    """As plain data, in SI units."""
    return {"kind": KIND, **plain_report(report)}


def calls_text(report: CallsReport) -> Group:
    """As tables and sentences."""
    parts: list[Any] = [figures_table(report.cluster, report.level, report.figures), Text(), _series(report)]
    if report.held_out is not None and report.held_out.decades:
        parts += [Text(), _decades(report.held_out)]
    parts += [Text(), *(Text(line) for line in sentences(report))]
    return Group(*parts)


def sentences(report: CallsReport) -> list[str]:
    """What the tables do not say."""
    found = []
    score = report.held_out
    if score is None:
        found.append(
            "Nothing was held out, so how far other calls would be missed is not known (`--hold-out`)."
        )
    else:
        found.append(
            f"Held out by `{score.rule}`: p50 and p99 of {score.rows // 2} series predicted within "
            f"{100 * score.median:.1f} % (median), {100 * score.mean:.1f} % (mean)."
        )
    if not report.closed:
        found.append(
            "Links of several tiers add up, or states add fixed times: the law has no closed likelihood, and the continuous ranked "
            "probability score was fitted instead."
        )
    if report.fitted < report.calls:
        found.append(f"Of {report.calls:,} calls every {-(-report.calls // report.fitted)}th was fitted.")
    if report.widened > 1.3:
        found.append(
            f"Calls depend on those before them: intervals are {report.widened:.1f} times as wide as of independent ones."
        )
    far = [each for each in report.series if each.far]
    if far:
        found.append(
            f"The fitted distribution is not the measured one of {len(far)} of {len(report.series)} series (!): by more than "
            "chance, if calls do not depend on each other. Intervals hold only as far as the model does."
        )
    least, most = (f(each.factor for each in report.series) for f in (min, max))
    if least < 0.9 or most > 1.1:
        found.append(
            f"Idle times were fitted too, to {least:.2f} to {most:.2f} of the cluster's own, and are not kept: fit its links to "
            "mean times first if forecasts of times are wanted, and not of their scatter alone."
        )
    ended = report.how_it_ended()
    return [*found, f"{ended}.", *report.known]


def _series(report: CallsReport) -> Table:
    title = f"Single calls, measured and forecast, with {100 * report.level:.0f} % intervals"
    table = Table(box=None, title=title, title_justify="left")
    levels = [f"p{100 * level:g}" for level in report.series[0].levels]
    heading = [
        "calls of",
        "size",
        "calls",
        *(f"{name} {what}" for name in levels for what in ("measured", "forecast")),
    ]
    for name in (*heading, "error", "distance", "idle", ""):
        table.add_column(name, justify="left" if name in ("calls of", "") else "right", no_wrap=True)
    for each in report.series:
        pairs = zip(each.measured, each.forecast, strict=True)
        errors = [
            f"{100 * (p[1] / m[1] - 1):+.1f}" for m, p in zip(each.measured, each.forecast, strict=True)
        ]
        table.add_row(
            each.label,
            format_quantity(each.size, Dimension.SIZE),
            f"{each.calls:,}",
            *(_interval(ends) for pair in pairs for ends in pair),
            f"{', '.join(errors)} %",
            f"{each.distance:.3f}{' !' if each.far else ''}",
            f"x{each.factor:.2f}",
            "held out" if each.held_out else "fitted",
        )
    return table


def _interval(ends: Sequence[float]) -> str:
    low, middle, high = map(duration, ends)
    return f"{middle} ({low} .. {high})"


def _decades(score: HeldOutScore) -> Table:
    table = Table(
        box=None, title="|forecast/measured - 1| of p50 and p99 held out, by size", title_justify="left"
    )
    for name in ("sizes", "quantiles", "median", "mean"):
        table.add_column(name, justify="left" if name == "sizes" else "right")
    for each in score.decades:
        ends = (f"{100 * value:.1f} %" for value in (each.median, each.mean))
        table.add_row(f"from {format_quantity(each.size, Dimension.SIZE)}", str(each.rows), *ends)
    return table
