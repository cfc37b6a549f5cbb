"""The report of `tailstep mitigations`: what each switch does to the tail, and to what gets done."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.times import TimeScale, scale_for
from mc.results.comparison import Difference

if TYPE_CHECKING:
    from mc.experiment.mitigations import Mitigations, Tried

_SHOWN = ("mean", "p50", "p99")
AS_IT_IS = "as it is"


def mitigations_table(found: "Mitigations", refused: Mapping[str, str]) -> Group:
    """The whole report; `refused` says why something was not tried."""
    times = found.result.estimates
    scale = scale_for(
        [getattr(times, name) for name in _SHOWN]
        + [each.found.times[name].difference for each in found.tried for name in _SHOWN]
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("mitigation")
    for heading in (
        *(f"{name} ({scale.unit})" for name in _SHOWN),
        "p99 changes by",
        "chips",
        "useful work/s",
        "per chip",
    ):
        table.add_column(heading, justify="right")
    at = (scale.number(getattr(times, name).value) for name in _SHOWN)
    table.add_row(AS_IT_IS, *at, "", f"{found.chips:,}", "1", "1")
    for each in found.tried:
        after = (scale.number(each.found.times[name].after) for name in _SHOWN)
        table.add_row(
            Text(each.name),
            *after,
            _change(each.found.times["p99"], scale),
            f"{each.chips:,}",
            _ratio(each.throughput),
            _ratio(each.per_chip),
        )
    confidence = f"{100 * times.confidence:g} % intervals; all under the same noise, the least p99 first"
    parts: list[Any] = [Text(f"{found.name}: {confidence}"), Text(), table]
    if refused:
        parts += [Text(), Text("not possible here", style="bold")]
        parts += [Text(f"{name}: {reason}") for name, reason in refused.items()]
    return Group(*parts)


def mitigations_json(found: "Mitigations", refused: Mapping[str, str]) -> dict[str, Any]:
    """For programs; seconds, and null where an interval has no bound."""
    return {
        "name": found.name,
        "confidence": found.result.estimates.confidence,
        "chips": found.chips,
        "step_time_s": {name: _plain(getattr(found.result.estimates, name)) for name in _SHOWN},
        "tried": [_row(each) for each in found.tried],
        "not_possible": dict(refused),
    }


def _change(each: Difference, scale: TimeScale) -> str:
    change = each.difference
    ends = [("+" if end > 0 else "") + scale.number(end) for end in (change.low, change.high)]
    return "exact" if change.low == change.high else f"{ends[0]} .. {ends[1]}"


def _ratio(each: Estimate) -> str:
    return f"{each.value:.3f} ({each.low:.3f} .. {each.high:.3f})"


def _row(each: "Tried") -> dict[str, Any]:
    return {
        "name": each.name,
        "chips": each.chips,
        "useful": each.useful,
        "paired": each.found.is_paired,
        "step_time_s": {name: each.found.times[name].after for name in _SHOWN},
        "change_s": {name: _plain(each.found.times[name].difference) for name in _SHOWN},
        "throughput": _plain(each.throughput),
        "throughput_per_chip": _plain(each.per_chip),
        "waterfall_s": {name: part.after for name, part in each.found.parts.items()},
    }


def _plain(each: Estimate) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in (each.value, each.low, each.high)]
