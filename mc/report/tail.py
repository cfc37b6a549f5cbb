"""The report of `tailstep advise --samples`: what figures of the hardware are worth with noise."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.sensitivity import plain_estimate
from mc.report.times import scale_for

if TYPE_CHECKING:
    from mc.advise.tail import TailWorths


def tail_json(worths: "TailWorths") -> dict[str, Any]:
    """As plain data."""
    found = worths.found
    return {
        "name": found.name,
        "samples": found.steps,
        "level": found.confidence,
        "step_time_s": {name: plain_estimate(each) for name, each in found.numbers.items()},
        "tokens_per_joule": worths.tokens_per_joule,
        "tokens_per_dollar": worths.tokens_per_dollar,
        "unknown": worths.unknown or None,
        "elasticities": [
            {
                "figure": each.path,
                "value": each.value,
                **{
                    name: None if each.step is None else plain_estimate(each.step.of(name))
                    for name in found.numbers
                },
                "tokens_per_joule": None if each.per_joule is None else plain_estimate(each.per_joule),
                "tokens_per_dollar": None if each.per_dollar is None else plain_estimate(each.per_dollar),
            }
            for each in worths.worths
        ],
    }


def tail_table(worths: "TailWorths") -> RenderableType:
    """What 1 % more of each figure changes, in per cent."""
    found = worths.found
    scale = scale_for(found.numbers.values())
    numbers = ", ".join(f"{name} {scale.text(each.value)}" for name, each in found.numbers.items())
    table = Table(box=None, pad_edge=False)
    table.add_column("1 % more of", no_wrap=True)
    columns = [f"{name}, %" for name in found.numbers]
    columns += ["tokens/J, %"] if worths.tokens_per_joule is not None else []
    columns += ["tokens/$, %"] if worths.tokens_per_dollar is not None else []
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for each in worths.worths:
        cells = ["" if each.step is None else _cell(each.step.of(name)) for name in found.numbers]
        cells += [_cell(one) for one in (each.per_joule, each.per_dollar) if one is not None]
        table.add_row(Text(each.path), *cells)
    lines = [Text(f"{found.name}: {numbers}", style="bold")]
    if worths.tokens_per_joule is not None:
        lines.append(Text(f"{worths.tokens_per_joule:,.4g} tokens/J without the facility's overhead"))
    else:
        lines.append(Text(f"no tokens per joule: {worths.unknown}", style="dim"))
    if worths.tokens_per_dollar is not None:
        lines.append(Text(f"{worths.tokens_per_dollar:,.4g} tokens/$ at the prices given"))
    return Group(*lines, table, Text(f"{found.steps:,} steps; ± {100 * found.confidence:g} %", style="dim"))


def _cell(one: Estimate) -> str:
    reach = (one.high - one.low) / 2
    return f"{one.value:+.3f}" + (f" ± {reach:.3f}" if 0.0005 <= reach < float("inf") else "")
