"""The report of `tailstep diff`: what changed, and what it does to the step."""

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.run_table import LABELS
from mc.report.times import TimeScale, scale_for
from mc.results.comparison import Comparison, Difference

_ABSENT = "-"


def diff_table(found: Comparison) -> Group:
    """The whole report as one renderable for a rich console."""
    how = "the same random numbers in both" if found.is_paired else "drawn independently of each other"
    heading = f"{100 * found.confidence:g} % interval"
    scale = scale_of(found)
    return Group(
        Text(f"{found.names[0]} ({found.hashes[0]}) -> {found.names[1]} ({found.hashes[1]}): {how}"),
        Text(),
        _changes(found),
        Text(),
        _differences("step time", found.times, scale, heading, LABELS),
        Text(),
        _differences("where the mean goes", shown_parts(found), scale, heading, {}),
    )


def scale_of(found: Comparison) -> TimeScale:
    """The scale in which all times and differences can be read together."""
    return scale_for(
        Estimate(
            each.before,
            each.difference.low - each.difference.value,
            each.difference.high - each.difference.value,
        )
        for each in (*found.times.values(), *found.parts.values())
    )


def diff_json(found: Comparison) -> dict[str, Any]:
    """For programs; seconds, and null where an interval has no bound."""
    return {
        "names": list(found.names),
        "config_hashes": list(found.hashes),
        "paired": found.is_paired,
        "confidence": found.confidence,
        "changes": [
            {"path": each.path, "before": each.before, "after": each.after} for each in found.changes
        ],
        "step_time_s": {name: _plain(each) for name, each in found.times.items()},
        "waterfall_s": {name: _plain(each) for name, each in found.parts.items()},
    }


def _plain(each: Difference) -> dict[str, float | None]:
    values = {
        "before": each.before,
        "after": each.after,
        "difference": each.difference.value,
        "low": each.difference.low,
        "high": each.difference.high,
    }
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def shown_parts(found: Comparison) -> dict[str, Difference]:
    """Parts that are anywhere more than nothing."""
    return {name: each for name, each in found.parts.items() if each.before or each.after}


def _changes(found: Comparison) -> RenderableType:
    if not found.changes:
        return Text("the configurations are the same")
    table = _table("configuration", "before", "after")
    for each in found.changes:
        values = (_ABSENT if value is None else value for value in (each.before, each.after))
        table.add_row(Text(each.path), *(Text(value) for value in values))
    return table


def _differences(
    title: str, rows: Mapping[str, Difference], scale: TimeScale, heading: str, labels: Mapping[str, str]
) -> Table:
    table = _table(title, f"before ({scale.unit})", "after", "difference", heading)
    for name, each in rows.items():
        change = each.difference
        interval = f"{signed(change.low, scale)} .. {signed(change.high, scale)}"
        table.add_row(
            Text(labels.get(name, name.replace("_", " "))),
            scale.number(each.before),
            scale.number(each.after),
            signed(change.value, scale),
            "exact" if change.low == change.high else interval,
        )
    return table


def signed(seconds: float, scale: TimeScale) -> str:
    """A difference, with its sign."""
    return ("+" if seconds > 0 else "") + scale.number(seconds)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for other in others:
        table.add_column(other, justify="right")
    return table
