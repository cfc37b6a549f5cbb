"""The report of `tailstep sensitivity`: figures by what they do to a step."""

import math
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.times import scale_for

if TYPE_CHECKING:
    from mc.sensitivity import Sensitivity

# Of a picture.
_DECIMALS = 3


def sensitivity_json(found: "Sensitivity") -> dict[str, Any]:
    """The result as plain data: elasticities and intervals `[low, high]`, null for a bound that is not there."""
    return {
        "name": found.name,
        "samples": found.steps,
        "realisations": found.realisations,
        "level": found.confidence,
        "step_time_s": {name: plain_estimate(each) for name, each in found.numbers.items()},
        "elasticities": [
            {
                "figure": each.path,
                "value": each.value,
                "method": each.method,
                **{name: plain_estimate(each.of(name)) for name in found.numbers},
                "derivative_s": {
                    name: each.of(name).value * number.value / each.value
                    for name, number in found.numbers.items()
                },
            }
            for each in found.elasticities
        ],
    }


def sensitivity_table(found: "Sensitivity", count: int) -> RenderableType:
    """Figures by what 1 % more of each does to a step, in per cent."""
    scale = scale_for(found.numbers.values())
    numbers = ", ".join(f"{name} {scale.text(each.value)}" for name, each in found.numbers.items())
    title = Text(f"{found.name}: {numbers}", style="bold")
    table = Table(box=None, pad_edge=False)
    table.add_column("1 % more of", no_wrap=True)
    for name in found.numbers:
        table.add_column(f"{name}, %", justify="right", no_wrap=True)
        table.add_column(f"{100 * found.confidence:g} %", justify="right", no_wrap=True, style="dim")
    for each in found.elasticities[:count]:
        cells = []
        for name in found.numbers:
            one = each.of(name)
            cells += [f"{one.value:+.{_DECIMALS}f}", f"{_end(one.low)} .. {_end(one.high)}"]
        mark = " *" if each.method == "differences" else ""
        table.add_row(Text(each.path + mark), *cells)
    lines = []
    if any(each.method == "differences" for each in found.elasticities[:count]):
        lines.append(Text("* by differences: steps jump in this figure", style="dim"))
    left = len(found.elasticities) - count
    if left > 0:
        lines.append(Text(f"{left} more matter less; --count shows them", style="dim"))
    steps = (
        f"{found.steps:,} steps in {found.realisations:,} realisation{'' if found.realisations == 1 else 's'}"
    )
    return Group(title, table, *lines, Text(steps, style="dim"))


def plain_estimate(one: Estimate) -> dict[str, Any]:
    """A number and its interval; null for a bound that is not there."""
    return {"value": one.value, "ci": [_finite(one.low), _finite(one.high)]}


def _end(number: float) -> str:
    return f"{number:+.{_DECIMALS}f}" if math.isfinite(number) else "unbounded"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
