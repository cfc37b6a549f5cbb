"""A transformer calibrated to steps at several numbers of ranks: for people, and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.report.fit_reports import Ending, FittedFigure, figures_from_json, figures_table, plain_report
from mc.report.times import duration

KIND = "training"


@dataclass(frozen=True)
class FittedSize:
    """A mean step on so many ranks, measured and fitted.

    Attributes:
        source: the file.
        ranks: how many.
        plan: what the table says of how the job was spread; may be empty.
        steps: that the time is the mean of.
        from_mfu: whether the MFU is what was measured.
        measured: seconds.
        prior: seconds, predicted before the fit.
        predicted: seconds, after it.
        constant: seconds, if ranks were used as well as those of the rows that were fitted.
        full_use: seconds of a step whose MFU is 1.
        held_out: whether the fit has not seen it.
    """

    source: str
    ranks: int
    plan: str
    steps: int
    from_mfu: bool
    measured: float
    prior: float
    predicted: float
    constant: float
    full_use: float
    held_out: bool


@dataclass(frozen=True)
class MeanForecast:
    """A mean step on a number of ranks that was asked for: (low, fitted, high), seconds; and that of an MFU of 1."""

    ranks: int
    time: Sequence[float]
    full_use: float


@dataclass(frozen=True)
class TrainingReport(Ending):
    """All that is said of a fit.

    Attributes:
        experiment: its name.
        level: of the intervals.
        figures: the parameters.
        sizes: the data, by ranks.
        scaling: `weak` or `strong`: what stays where the table does not say how a job was spread.
        scatter: relative, of rows around the fit.
        known: what the data tell apart, in sentences.
        forecasts: of other numbers of ranks.
    """

    experiment: str
    level: float
    figures: Sequence[FittedFigure]
    sizes: Sequence[FittedSize]
    scaling: str
    scatter: float
    known: Sequence[str]
    forecasts: Sequence[MeanForecast]


def training_json(report: TrainingReport) -> dict[str, Any]:
    """As plain data, in SI units."""
    plain = {"kind": KIND, **plain_report(report)}
    out = [each for each in report.sizes if each.held_out]
    if out:
        plain["held_out"] = {"rows": len(out), **_errors(out)}
    return plain


def training_from_json(found: Mapping[str, Any]) -> TrainingReport:
    """The inverse of `training_json`."""
    rest = {key: each for key, each in found.items() if key not in ("kind", "held_out")}
    return TrainingReport(
        **{
            **rest,
            "figures": figures_from_json(found),
            "sizes": [FittedSize(**each) for each in found["sizes"]],
            "forecasts": [MeanForecast(**each) for each in found["forecasts"]],
        }
    )


def training_text(report: TrainingReport) -> Group:
    """As tables and sentences."""
    parts: list[Any] = [
        figures_table(report.experiment, report.level, report.figures),
        Text(),
        _table("Mean steps", *size_rows(report)),
    ]
    if report.forecasts:
        title = f"Forecasts, {100 * report.level:.0f} % intervals of what the fit leaves unknown"
        parts += [Text(), _table(title, *forecast_rows(report))]
    parts += [Text(), *(Text(line) for line in sentences(report))]
    return Group(*parts)


def size_rows(report: TrainingReport) -> tuple[list[str], list[tuple[str, ...]]]:
    """A heading and a row for each number of ranks."""
    heading = ["ranks", "steps", "measured", "before", "fitted", "MFU: measured", "fitted", ""]
    rows = [
        (
            f"{each.ranks:,}",
            f"{each.steps:,}",
            duration(each.measured),
            f"{duration(each.prior)} ({_off(each.prior, each.measured)})",
            f"{duration(each.predicted)} ({_off(each.predicted, each.measured)})",
            f"{100 * each.full_use / each.measured:.1f} %",
            f"{100 * each.full_use / each.predicted:.1f} %",
            ("held out" if each.held_out else "fitted") + (f", {each.plan}" if each.plan else ""),
        )
        for each in report.sizes
    ]
    return heading, rows


def forecast_rows(report: TrainingReport) -> tuple[list[str], list[tuple[str, ...]]]:
    """A heading and a row for each forecast, with intervals."""
    rows = []
    for each in report.forecasts:
        low, middle, high = each.time
        use = f"{100 * each.full_use / middle:.1f} %"
        rows.append((f"{each.ranks:,}", f"{duration(middle)} ({duration(low)} .. {duration(high)})", use))
    return ["ranks", "mean step", "MFU"], rows


def sentences(report: TrainingReport) -> list[str]:
    """What the tables do not say."""
    found = [_scaling(report)]
    out = [each for each in report.sizes if each.held_out]
    if out:
        errors = _errors(out)
        found.append(
            f"Held out: {len(out)} row{'s' if len(out) > 1 else ''}, predicted within {100 * errors['mean']:.1f} % on average, "
            f"{100 * errors['most']:.1f} % at most; by the MFU of the fitted rows, kept as it is, "
            f"{100 * errors['constant_mean']:.1f} % and {100 * errors['constant_most']:.1f} %."
        )
    else:
        found.append(
            "Nothing was held out, so how far other numbers of ranks would be missed is not known (`--hold-out`)."
        )
    if any(each.from_mfu for each in report.sizes):
        found.append(
            "MFU counts the model's FLOP over the peak of the number format, attention in full and nothing twice; if the table "
            "counts otherwise, what it fits is off by that factor."
        )
    if report.outcome != "flat":
        found.append(
            "The fit did not end where its loss is flat, and its figures and intervals are not to be relied on: try more `--starts`, "
            "or free fewer figures (`--free`)."
        )
    return [
        *found,
        f"{report.how_it_ended()}. Rows scatter by {100 * report.scatter:.1f} % around it, or are taken to.",
        *report.known,
    ]


def _scaling(report: TrainingReport) -> str:
    what = (
        "each replica keeps its work, so the global batch grows with the ranks (`--scaling weak`)"
        if report.scaling == "weak"
        else "all together keep their work, the global batch (`--scaling strong`)"
    )
    return f"On other numbers of ranks there are more or fewer replicas, and where the table does not say more, {what}."


def _errors(rows: Sequence[FittedSize]) -> dict[str, float]:
    off = np.array([abs(each.predicted / each.measured - 1) for each in rows])
    plain = np.array([abs(each.constant / each.measured - 1) for each in rows])
    return {
        "mean": float(off.mean()),
        "most": float(off.max()),
        "constant_mean": float(plain.mean()),
        "constant_most": float(plain.max()),
    }


def _off(predicted: float, measured: float) -> str:
    return f"{100 * (predicted / measured - 1):+.1f} %"


def _table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, title=title, title_justify="left")
    for place, name in enumerate(heading):
        table.add_column(name, justify="left" if place == len(heading) - 1 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
