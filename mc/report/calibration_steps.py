"""An experiment calibrated to step times: for people, and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.report.fit_reports import Ending, FittedFigure, figures_from_json, figures_table, plain_report
from mc.report.times import duration

KIND = "steps"
# Quantiles that are shown by number of ranks.
BY_SIZE = (0.5, 0.99)


@dataclass(frozen=True)
class FittedRun:
    """Step times of one run, measured and fitted, at some quantiles.

    Attributes:
        source: the file.
        ranks: that waited for each other.
        steps: how many were measured.
        levels: of the quantiles.
        measured: seconds.
        predicted: seconds.
        distance: between the distributions, Kolmogorov's.
        far: whether that is more than chance.
        held_out: whether the fit has not seen the run.
        curve: (level, measured, fitted) over the whole distribution, seconds.
    """

    source: str
    ranks: int
    steps: int
    levels: Sequence[float]
    measured: Sequence[float]
    predicted: Sequence[float]
    distance: float
    far: bool
    held_out: bool
    curve: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Forecast:
    """Step times of a number of ranks that was asked for: at each level (low, fitted, high), seconds."""

    ranks: int
    levels: Sequence[float]
    times: Sequence[Sequence[float]]


@dataclass(frozen=True)
class SizeResidual:
    """What a fit leaves of all runs on one number of ranks, either fitted or held out.

    Attributes:
        ranks: how many.
        runs: how many.
        held_out: whether the fit has not seen them.
        levels: of the quantiles.
        ratios: fitted over measured quantiles, at each level (least, geometric mean, most) over the runs.
    """

    ranks: int
    runs: int
    held_out: bool
    levels: Sequence[float]
    ratios: Sequence[Sequence[float]]


@dataclass(frozen=True)
class StepsReport(Ending):
    """All that is said of a fit.

    Attributes:
        experiment: its name.
        level: of the intervals.
        figures: the parameters.
        runs: the data.
        known: what the data tell apart, in sentences.
        forecasts: of other numbers of ranks.
        log_likelihood: of what was fitted; None where it has none, and its draws were scored.
    """

    experiment: str
    level: float
    figures: Sequence[FittedFigure]
    runs: Sequence[FittedRun]
    known: Sequence[str]
    forecasts: Sequence[Forecast]
    log_likelihood: float | None


def steps_json(report: StepsReport) -> dict[str, Any]:
    """As plain data, in SI units."""
    return {"kind": KIND, **plain_report(report), "sizes": [asdict(each) for each in by_size(report)]}


def steps_from_json(found: Mapping[str, Any]) -> StepsReport:
    """The inverse of `steps_json`."""
    # What follows from the runs is worked out again.
    rest = {key: each for key, each in found.items() if key not in ("kind", "sizes")}
    return StepsReport(
        **{
            **rest,
            "figures": figures_from_json(found),
            "runs": [FittedRun(**each) for each in found["runs"]],
            "forecasts": [Forecast(**each) for each in found["forecasts"]],
        }
    )


def steps_text(report: StepsReport) -> Group:
    """As tables and sentences."""
    parts: list[Any] = [figures_table(report.experiment, report.level, report.figures), Text(), _runs(report)]
    if has_sizes(report):
        parts += [Text(), _table("Fitted over measured, by number of ranks", *size_rows(report))]
    if report.forecasts:
        parts += [Text(), _forecasts(report)]
    parts += [Text(), *(Text(line) for line in sentences(report))]
    return Group(*parts)


def sentences(report: StepsReport) -> list[str]:
    """What the tables do not say."""
    found = []
    out = [each for each in report.runs if each.held_out]
    if out:
        off = [abs(p / m - 1) for each in out for p, m in zip(each.predicted, each.measured, strict=True)]
        found.append(
            f"Held out: {len(out)} run{'s' if len(out) > 1 else ''}, quantiles predicted within "
            f"{100 * sum(off) / len(off):.1f} % on average, {100 * max(off):.1f} % at most."
        )
    else:
        found.append(
            "Nothing was held out, so how far other runs would be missed is not known (`--hold-out`)."
        )
    far = [each for each in report.runs if each.far]
    if far:
        ranks = ", ".join(f"{each.ranks:,}" for each in far)
        found.append(
            f"The fitted distribution is not the measured one on {ranks} ranks: by more than chance, if steps do not depend on each "
            "other. Intervals hold only as far as the model does."
        )
    if report.outcome != "flat":
        found.append(
            "The fit did not end where its loss is flat, and its figures and intervals are not to be relied on: try more `--starts`, "
            "or free fewer figures (`--free`)."
        )
    return [*found, f"{report.how_it_ended()}.", *report.known]


def run_rows(report: StepsReport) -> tuple[list[str], list[tuple[str, ...]]]:
    """A heading and a row for each run: measured against fitted."""
    named = [f"p{100 * level:g}" for level in report.runs[0].levels]
    heading = ["ranks", "steps", *(f"{name}: measured, fitted" for name in named), "distance", ""]
    rows = [
        (
            f"{each.ranks:,}",
            f"{each.steps:,}",
            *(
                f"{duration(m)} {duration(p)} ({100 * (p / m - 1):+.1f} %)"
                for m, p in zip(each.measured, each.predicted, strict=True)
            ),
            f"{each.distance:.3f}{' !' if each.far else ''}",
            "held out" if each.held_out else "fitted",
        )
        for each in report.runs
    ]
    return heading, rows


def by_size(report: StepsReport) -> list[SizeResidual]:
    """What is left at the median and p99, by number of ranks: a trend there is one in the law of the slowest of n."""
    groups: dict[tuple[int, bool], list[FittedRun]] = {}
    for run in report.runs:
        groups.setdefault((run.ranks, run.held_out), []).append(run)
    found = []
    for (ranks, held_out), runs in sorted(groups.items()):
        levels = [level for level in BY_SIZE if level in runs[0].levels]
        ratios = []
        for place in (list(runs[0].levels).index(level) for level in levels):
            own = [run.predicted[place] / run.measured[place] for run in runs]
            ratios.append((min(own), geometric_mean(own), max(own)))
        found.append(SizeResidual(ranks, len(runs), held_out, levels, ratios))
    return found


def has_sizes(report: StepsReport) -> bool:
    """Whether there are runs on several numbers of ranks."""
    return len({run.ranks for run in report.runs}) > 1


def size_rows(report: StepsReport) -> tuple[list[str], list[tuple[str, ...]]]:
    """A heading and a row for each number of ranks: fitted over measured quantiles, with their range over several runs."""
    sizes = by_size(report)
    heading = ["ranks", "runs", *(f"p{100 * level:g}" for level in sizes[0].levels), ""]
    rows = [
        (
            f"{each.ranks:,}",
            f"{each.runs:,}",
            *(
                f"{middle:.3f}" + (f" ({low:.3f} .. {high:.3f})" if each.runs > 1 else "")
                for low, middle, high in each.ratios
            ),
            "held out" if each.held_out else "fitted",
        )
        for each in sizes
    ]
    return heading, rows


def forecast_rows(report: StepsReport) -> tuple[list[str], list[tuple[str, ...]]]:
    """A heading and a row for each forecast, with intervals."""
    levels = report.forecasts[0].levels
    heading = ["ranks", *(f"p{100 * level:g}" for level in levels)]
    rows = [
        (
            f"{each.ranks:,}",
            *(f"{duration(mid)} ({duration(low)} .. {duration(high)})" for low, mid, high in each.times),
        )
        for each in report.forecasts
    ]
    return heading, rows


def _runs(report: StepsReport) -> Table:
    return _table("Step times", *run_rows(report))


def _forecasts(report: StepsReport) -> Table:
    title = f"Forecasts, {100 * report.level:.0f} % intervals of what the fit leaves unknown"
    return _table(title, *forecast_rows(report))


def _table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, title=title, title_justify="left")
    for place, name in enumerate(heading):
        table.add_column(name, justify="left" if place == len(heading) - 1 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
