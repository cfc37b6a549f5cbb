"""The report of two runs: what was asked for otherwise, and what came of it."""

import math
from collections.abc import Mapping

from mc.report.diff import scale_of, shown_parts, signed
from mc.report.html.honesty import plain_points
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.report.pictures.run import differences_panel, distribution_panel, tail_panel
from mc.report.run_table import LABELS
from mc.report.times import TimeScale, duration
from mc.results import RunRecord
from mc.results.comparison import Comparison, Difference, compare

_ASSUMED = (
    "Intervals are about sampling: they say how well the difference is known, not whether two machines would differ so.",
    "What both runs assume they share; its error is in both times, and mostly cancels in the difference where only what the model "
    "describes well was changed.",
)


def comparison_page(first: RunRecord, second: RunRecord, origin: str = "") -> Page:
    """The page of two runs."""
    found = compare(first.result, second.result)
    names = found.names
    if names[0] == names[1]:
        names = (f"{names[0]}, first", f"{names[1]}, second")
    mean, tail = found.times["mean"], found.times["p99"]
    facts = [
        (f"mean, {names[0]}", duration(mean.before)),
        (f"mean, {names[1]}", duration(mean.after)),
        ("mean", _relative(mean)),
        ("p99", _relative(tail)),
        ("values changed", f"{len(found.changes):,}"),
    ]
    return Page(
        "comparison",
        f"{names[0]} → {names[1]}",
        "",
        facts,
        [
            _changed(found, names),
            _step(found, first, second, names),
            _parts(found, names),
            plain_points([_pairs(found), *_ASSUMED]),
            provenance(first.manifest, title=f"Provenance of {names[0]}"),
            provenance(second.manifest, title=f"Provenance of {names[1]}"),
        ],
        origin,
    )


def _changed(found: Comparison, names: tuple[str, str]) -> Section:
    rows = [
        (each.path, *("-" if value is None else value for value in (each.before, each.after)))
        for each in found.changes
    ]
    if not rows:
        return Section("What changed", text=["The configurations are the same."])
    return Section("What changed", tables=[Table(("value", *names), rows, words=True)])


def _step(found: Comparison, first: RunRecord, second: RunRecord, names: tuple[str, str]) -> Section:
    runs = [first.result, second.result]
    differences = {LABELS[name]: _ends(each) for name, each in found.times.items()}
    level = f"{100 * found.confidence:g} %"
    return Section(
        "Step time",
        pictures=[
            Picture(
                distribution_panel(runs, names), f"Shares of steps; bands are pointwise {level} intervals."
            ),
            Picture(tail_panel(runs, names), "Shares of steps that take longer, on logarithmic axes."),
            Picture(differences_panel(differences), f"Differences with their {level} intervals.", height=2.6),
        ],
        tables=[_table("step time", found.times, found, names, LABELS)],
    )


def _parts(found: Comparison, names: tuple[str, str]) -> Section:
    parts = shown_parts(found)
    differences = {name: _ends(each) for name, each in parts.items()}
    shown = Picture(
        differences_panel(differences),
        "Differences of the mean, part by part.",
        height=1.4 + 0.3 * len(parts),
    )
    return Section(
        "Where the mean goes", pictures=[shown], tables=[_table("part of the mean", parts, found, names, {})]
    )


def _table(
    title: str,
    rows: Mapping[str, Difference],
    found: Comparison,
    names: tuple[str, str],
    labels: Mapping[str, str],
) -> Table:
    scale = scale_of(found)
    shown = [
        (
            labels.get(name, name.replace("_", " ")),
            scale.number(each.before),
            scale.number(each.after),
            signed(each.difference.value, scale),
            _interval(each, scale),
        )
        for name, each in rows.items()
    ]
    heading = (
        title,
        *(f"{name}, {scale.unit}" for name in names),
        "difference",
        f"{100 * found.confidence:g} % interval",
    )
    return Table(heading, shown)


def _interval(each: Difference, scale: TimeScale) -> str:
    low, high = each.difference.low, each.difference.high
    return "exact" if low == high else f"{signed(low, scale)} to {signed(high, scale)}"


def _ends(each: Difference) -> tuple[float, float, float]:
    return each.difference.value, each.difference.low, each.difference.high


def _relative(each: Difference) -> str:
    if not each.before or not math.isfinite(each.before):
        return "no change" if each.after == each.before else "not comparable"
    return f"{100 * (each.after / each.before - 1):+.2f} %"


def _pairs(found: Comparison) -> str:
    if found.is_paired:
        return (
            "Both met the same random numbers, so differences are those of pairs; an interval that covers 0 is no evidence of a "
            "change."
        )
    return "Both were drawn independently of each other, so differences carry the noise of both."
