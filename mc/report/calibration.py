"""A calibration for people: what was free, what was found, how far off it is; and the same as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.report.fit_reports import Ending, FittedFigure, figures_from_json, figures_table, plain_report
from mc.units import Dimension, format_quantity


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
        held_out: whether the fit has not seen it.
    """

    label: str
    sizes: Sequence[float]
    measured: Sequence[float]
    prior: Sequence[float]
    predicted: Sequence[float]
    bus_factor: float = 1.0
    held_out: bool = False


@dataclass(frozen=True)
class HeldOutDecade:
    """Errors on what was held out, of one decade of sizes: from so many bytes on."""

    size: float
    rows: int
    median: float
    mean: float


@dataclass(frozen=True)
class HeldOutScore:
    """Errors |predicted/measured − 1| on what the fit had not seen.

    Attributes:
        median: of all.
        mean: of all.
        line_median: of a plain line fitted to the same rows; None where it has none to be fitted to.
        line_mean: likewise.
        rule: that held rows out; empty where every other size was, before all were fitted.
        rows: how many.
        decades: by size.
    """

    median: float
    mean: float
    line_median: float | None
    line_mean: float | None
    rule: str = ""
    rows: int = 0
    decades: Sequence[HeldOutDecade] = ()


@dataclass(frozen=True)
class SecondNetwork:
    """Whether large messages have a network of their own.

    Attributes:
        first: bytes that it would begin at.
        kept: whether it is there.
        one: median of |predicted/measured − 1| on what was held out for the choice, with one network.
        two: likewise, with two.
        by: what was held out.
    """

    first: float
    kept: bool
    one: float
    two: float
    by: str

    def __str__(self):
        """In a sentence."""
        size = format_quantity(self.first, Dimension.SIZE)
        return (
            f"A second network from {size} on {'is kept' if self.kept else 'was tried and left'}: of {self.by}, not fitted for that, "
            f"two networks miss {100 * self.two:.1f} % in the median, one {100 * self.one:.1f} %."
        )


@dataclass(frozen=True)
class SampledPosterior:
    """Draws that intervals come from.

    Attributes:
        chains: how many.
        draws: of each.
        rhat: the largest of all figures.
        effective: the least effective sample size of all figures.
        divergences: steps whose energy ran off.
    """

    chains: int
    draws: int
    rhat: float
    effective: float
    divergences: int

    def __str__(self):
        """In a sentence or two."""
        found = (
            f"Intervals from {self.chains} chains of {self.draws:,} draws by NUTS: R-hat at most {self.rhat:.3f}, effective sample "
            f"size at least {self.effective:,.0f}, {self.divergences:,} divergences."
        )
        if self.rhat < 1.01 and self.effective >= 100 * self.chains and not self.divergences:
            return found
        return f"{found} Chains agree where R-hat is below 1.01 and the effective size 100 for each: these are not to be relied on."


@dataclass(frozen=True)
class CalibrationReport(Ending):
    """All that is said of a fit.

    Attributes:
        cluster: its name.
        level: of the intervals.
        figures: the parameters.
        curves: the data.
        scatter: relative, of measurements around the model.
        held_out: the score on what the fit had not seen; None without.
        known: what the data tell apart, in sentences.
        second_network: what came of trying one; None where it was not asked for.
        sampled: draws of the posterior that intervals come from; None where they do not.
    """

    cluster: str
    level: float
    figures: Sequence[FittedFigure]
    curves: Sequence[FittedCurve]
    scatter: float
    held_out: HeldOutScore | None
    known: Sequence[str]
    second_network: SecondNetwork | None = None
    sampled: SampledPosterior | None = None


def calibration_json(report: CalibrationReport) -> dict[str, Any]:
    """As plain data, in SI units."""
    return plain_report(report)


def calibration_from_json(found: Mapping[str, Any]) -> CalibrationReport:
    """The inverse of `calibration_json`."""
    held_out, second, sampled = found["held_out"], found.get("second_network"), found.get("sampled")
    return CalibrationReport(
        **{
            **found,
            "figures": figures_from_json(found),
            "curves": [FittedCurve(**each) for each in found["curves"]],
            "held_out": None if held_out is None else _score(held_out),
            "sampled": None if sampled is None else SampledPosterior(**sampled),
            "second_network": None if second is None else SecondNetwork(**second),
        }
    )


def _score(found: Mapping[str, Any]) -> HeldOutScore:
    return HeldOutScore(**{**found, "decades": [HeldOutDecade(**each) for each in found.get("decades", ())]})


def held_out_score(
    errors: NDArray[np.float64], sizes: NDArray[np.float64], line: NDArray[np.float64], rule: str = ""
) -> HeldOutScore:
    """The score of errors |predicted/measured − 1| at some sizes, those of a line beside them (nan where it has none)."""
    decades = np.floor(np.log10(sizes) + 1e-9).astype(int)
    known = bool(np.isfinite(line).all())
    return HeldOutScore(
        float(np.median(errors)),
        float(errors.mean()),
        float(np.median(line)) if known else None,
        float(line.mean()) if known else None,
        rule,
        len(errors),
        [
            HeldOutDecade(float(10.0**each), len(own), float(np.median(own)), float(own.mean()))
            for each in sorted(set(decades.tolist()))
            for own in (errors[decades == each],)
        ],
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
        parts.append(Text(score_text(report.held_out)))
    if report.second_network is not None:
        parts.append(Text(str(report.second_network)))
    if report.sampled is not None:
        parts.append(Text(str(report.sampled)))
    parts.append(Text(ending(report)))
    parts += [Text(line) for line in report.known]
    return Group(*parts)


def score_text(score: HeldOutScore) -> str:
    """What was held out, and how far it is missed, in a sentence."""
    what = f"Held out by `{score.rule}`, {score.rows} rows" if score.rule else "Sizes held out"
    found = f"{what}: predicted within {100 * score.median:.1f} % (median), {100 * score.mean:.1f} % (mean)"
    if score.line_median is None or score.line_mean is None:
        return f"{found}."
    return f"{found}; by a plain latency-bandwidth line {100 * score.line_median:.1f} %, {100 * score.line_mean:.1f} %."


def ending(report: CalibrationReport) -> str:
    """How the fit ended, in sentences."""
    return f"{report.how_it_ended()}. Measurements scatter by {100 * report.scatter:.1f} % around it."


def _decades(report: CalibrationReport) -> Table:
    table = Table(box=None, title="|predicted/measured - 1|, medians by size", title_justify="left")
    heading, rows = decade_rows(report)
    for name in heading:
        table.add_column(name, justify="left" if name == "sizes" else "right")
    for row in rows:
        table.add_row(*row)
    return table


def decade_rows(report: CalibrationReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Errors by decades of sizes: from which on, how many rows, medians before and after the fit, the median with its sign.

    Behind them, where something was held out, how many of those rows, and their median and mean error.
    """
    score = report.held_out
    heading = ("sizes", "rows", "before", "fitted", "bias")
    heading += ("held out", "median", "mean") if score is not None and score.decades else ()
    fitted = [curve for curve in report.curves if not curve.held_out]
    sizes, before, after = (
        np.concatenate([np.asarray(each, float) for each in group])
        for group in (
            [curve.sizes for curve in fitted],
            [np.asarray(curve.prior) / np.asarray(curve.measured) - 1 for curve in fitted],
            [np.asarray(curve.predicted) / np.asarray(curve.measured) - 1 for curve in fitted],
        )
    )
    decades = np.floor(np.log10(sizes) + 1e-9).astype(int)
    left = {} if score is None else {round(np.log10(each.size)): each for each in score.decades}
    found = []
    for decade in sorted({*decades.tolist(), *left}):
        own = decades == decade
        row = ["", "", "", ""]
        if own.any():
            row = [
                str(int(own.sum())),
                f"{100 * np.median(np.abs(before[own])):.1f} %",
                f"{100 * np.median(np.abs(after[own])):.1f} %",
                f"{100 * np.median(after[own]):+.1f} %",
            ]
        if left:
            each = left.get(decade)
            row += (
                ["", "", ""]
                if each is None
                else [str(each.rows), f"{100 * each.median:.1f} %", f"{100 * each.mean:.1f} %"]
            )
        found.append((f"from {format_quantity(float(10.0**decade), Dimension.SIZE)}", *row))
    return heading, found
