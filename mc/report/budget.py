"""The report of `tailstep advise --budget`: the best figures, what is spent on each, and what more would save."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.report.times import duration
from mc.units import Dimension, format_quantity

if TYPE_CHECKING:
    from mc.advise.budget import Spending


_NUMBERS = {"mean": "mean", "p50": "median", "p99": "p99"}


def budget_json(found: "Spending") -> dict[str, Any]:
    """All of it as plain data; figures in SI units, costs in the unit of the budget, for each chip."""
    best = found.allocation
    rows = zip(best.figures, found.values, best.factor, best.spent, best.saved, best.bound, strict=True)
    return {
        "name": found.name,
        "ranks": found.ranks,
        "unit": found.unit,
        "budget": found.ranks * (best.budget + found.fixed),
        "budget_now": found.ranks * found.now,
        "fixed_per_chip": found.fixed,
        "step_time_s": {"now": best.before, "best": best.time},
        "by": None if found.number is None else found.number.name,
        "samples": None if found.number is None else found.number.samples,
        "tokens_per_s": None
        if found.tokens is None
        else {"now": found.tokens / best.before, "best": found.tokens / best.time},
        "figures": [
            {
                "name": figure.name,
                "value_now": value,
                "value": value * float(factor),
                "factor": float(factor),
                "exponent": figure.exponent,
                "cost_now": figure.cost,
                "cost": float(spent),
                "saved_s_by_one_more": more,
                "lost_s_by_one_less": less,
                "bound": bound or None,
            }
            for figure, value, factor, spent, (more, less), bound in rows
        ],
        "constant": list(found.constant),
        "shadow_price_s": best.shadow_price,
        "saved_percent_by_one_percent": _saved(found),
        "gap": best.gap,
        "best_so_far_s": [float(each) for each in best.path],
    }


def _rate_of(found: "Spending") -> str:
    return "tokens/s" if found.number is None else "steps/s by that"


def _saved(found: "Spending") -> float:
    """Percent of the step that one percent more of the budget for figures saves."""
    best = found.allocation
    return best.shadow_price * best.budget / best.time


def budget_table(found: "Spending") -> RenderableType:
    """The same for a terminal."""
    best = found.allocation
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("of a chip")
    for name in (
        "is now",
        "best",
        "times",
        f"{found.unit} now",
        f"{found.unit} best",
        f"1 {found.unit} more saves",
        f"1 {found.unit} less costs",
        "",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    rows = zip(best.figures, found.values, best.factor, best.spent, best.saved, best.bound, strict=True)
    for figure, value, factor, spent, saved, bound in rows:
        table.add_row(
            figure.name,
            f"{value:.4g}",
            f"{value * factor:.4g}",
            f"{factor:.3g}",
            f"{figure.cost:,.4g}",
            f"{spent:,.4g}",
            *(duration(max(each, 0.0)) for each in saved),
            f"at its {bound}" if bound else "",
        )
    table.add_section()
    every = found.fixed + best.budget
    table.add_row("what does not change", "", "", "", f"{found.fixed:,.4g}", f"{found.fixed:,.4g}")
    table.add_row("all", "", "", "", f"{found.now:,.4g}", f"{every:,.4g}")
    faster = best.before / best.time - 1
    what = (
        "a step"
        if found.number is None
        else f"{_NUMBERS[found.number.name]} of {found.number.samples:,} steps"
    )
    rate = "" if found.tokens is None else f", {found.tokens / best.time:,.4g} tokens/s"
    lines = [
        f"{duration(best.before)} {what} now, {duration(best.time)} at best: {100 * faster:+.1f} % {_rate_of(found)}{rate}",
        f"1 % more for these figures shortens the step by {_saved(found):.2f} %; moving 0.1 % of it elsewhere by "
        f"{100 * best.gap:.2g} % at most",
    ]
    if found.constant:
        lines.append(
            f"as they are, since no cost is known: {', '.join(found.constant)} (--cost 'NAME=AMOUNT')"
        )
    total = f"{found.ranks * every:,.5g} {found.unit}"
    if found.unit == "W":
        total = format_quantity(found.ranks * every, Dimension.POWER, digits=4)
    title = f"{found.name}: {total} for {found.ranks:,} chips"
    return Group(Text(title, style="bold"), table, Text(), *map(Text, lines))
