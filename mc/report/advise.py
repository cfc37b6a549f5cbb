"""The reports of `tailstep advise`: the best plans, and what figures of the hardware are worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.config.recompute import recompute_text
from mc.report.times import duration

if TYPE_CHECKING:
    from mc.advise.evaluated import Evaluated, SearchResult
    from mc.advise.rank import Drawn
    from mc.advise.worth import Worths

SIZES = ("tp", "cp", "pp", "dp", "ep")


def plans_json(found: "SearchResult", drawn: Sequence["Drawn"]) -> dict[str, Any]:
    """The search as plain data, SI units in the keys."""
    return {
        "name": found.name,
        "ranks": found.ranks,
        "plans": found.total,
        "refused": found.refused,
        "pruned": found.pruned,
        "evaluated": found.evaluated,
        "drawn": found.drawn,
        "shorter_with_noise": found.shortened,
        "memory_available_bytes": found.available,
        "written": None if found.written is None else plan_json(found.written),
        "best": [plan_json(each) for each in found.best],
        "front": [plan_json(each) for each in found.front],
        "by_p99": [
            {
                **plan_json(each.found),
                "mean_s": _interval(each.mean),
                "p99_s": _interval(each.p99),
            }
            for each in drawn
        ],
        "front_by_p99": [list(drawn).index(each) for each in front_of_tails(drawn)],
    }


def _interval(estimate: Any) -> dict[str, float | None]:
    bounds = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: float(value) if abs(value) < float("inf") else None for name, value in bounds.items()}


def plan_json(one: "Evaluated") -> dict[str, Any]:
    """A plan that was evaluated as plain data."""
    plan = one.plan
    again = plan.recompute
    return {
        "step_time_s": one.step,
        "memory_bytes": one.memory,
        "fits": one.fits,
        "mfu": one.mfu,
        "bubble_fraction": one.bubble_fraction,
        "exposed_s": one.exposed,
        "plan": {
            **{name: getattr(plan, name) for name in SIZES},
            "order": list(plan.order),
            "micro_batch": plan.micro_batch,
            "micro_batches": plan.micro_batches,
            "schedule": plan.schedule,
            "chunks": plan.chunks,
            "balance_ends": plan.config.balance_ends,
            "recompute": again if isinstance(again, str) else list(again),
            "zero": plan.zero,
        },
    }


def plans_table(found: "SearchResult", drawn: Sequence["Drawn"]) -> RenderableType:
    """The best plans, the one that the file says, and what became of all."""
    title = Text(f"The best plans of {found.name}", style="bold")
    table = Table(box=None, pad_edge=False)
    for name in ("", *SIZES, "batch", "schedule", "again", "ZeRO", "order", "step", "MFU", "memory"):
        table.add_column(
            name, justify="left" if name in ("", "schedule", "again", "order") else "right", no_wrap=True
        )
    tails = {id(each.found): each for each in drawn}
    if drawn:
        table.add_column("mean", justify="right")
        table.add_column("p99", justify="right")
    rows = [(str(place), each) for place, each in enumerate([one.found for one in drawn] or found.best, 1)]
    if found.written is not None:
        rows.append(("file", found.written))
    for name, each in rows:
        cells = plan_cells(name, each)
        if id(each) in tails:
            tail = tails[id(each)]
            cells += [duration(tail.mean.value), duration(tail.p99.value)]
        table.add_row(*cells)
    return Group(title, table, *counts(found))


def plan_cells(name: str, one: "Evaluated") -> list[str | Text]:
    """A row of a table of plans."""
    plan = one.plan
    chunks = f" x {plan.chunks}" if plan.schedule == "interleaved" else ""
    again = plan.recompute if isinstance(plan.recompute, str) else recompute_text(plan.recompute)
    return [
        name,
        *(str(getattr(plan, each)) for each in SIZES),
        str(plan.micro_batch),
        f"{plan.schedule}{chunks}",
        # A list of parts has brackets, which are no markup.
        Text(again),
        str(plan.zero),
        " ".join(each for each in plan.order if getattr(plan, each) > 1),
        duration(one.step),
        f"{100 * one.mfu:.1f} %",
        f"{one.memory / 1e9:.1f} GB{'' if one.fits else ' *'}",
    ]


def counts(found: "SearchResult") -> list[Text]:
    """What became of all plans."""
    lines = [Text(""), Text(f"{found.total:,} combinations:")]
    lines += [Text(f"{count:>14,}  refused: {reason}") for reason, count in found.refused.items()]
    lines += [
        Text(f"{count:>14,}  too slow by the bound of {reason}") for reason, count in found.pruned.items()
    ]
    lines.append(Text(f"{found.evaluated:>14,}  evaluated"))
    if found.drawn:
        lines.append(
            Text(
                f"{found.drawn:>14,}  of these drawn; the others take longer without noise than the best by p99"
            )
        )
    if found.shortened:
        lines.append(
            Text(
                f"{found.shortened:>14,}  took less with noise than without: plans that were not drawn may be better"
            )
        )
    if found.written is not None and not found.drawn:
        gain = found.written.step / found.best[0].step - 1
        if found.written.fits:
            lines.append(Text(f"The best is {100 * gain:.2f} % faster than the plan of the file."))
        else:
            lines.append(Text("* does not fit into a chip's memory"))
    return lines


def front_of_tails(drawn: Sequence["Drawn"]) -> list["Drawn"]:
    """Those that no other beats both in the mean and in the p99, by the mean."""
    front: list[Drawn] = []
    for each in sorted(drawn, key=lambda one: (one.mean.value, one.p99.value)):
        if not front or each.p99.value < front[-1].p99.value:
            front.append(each)
    return front


def worth_json(found: "Worths") -> dict[str, Any]:
    """Elasticities as plain data."""
    return {
        "name": found.name,
        "step_time_s": found.step,
        "elasticities": [
            {
                "number": each.name,
                "value": each.number,
                "elasticity": each.elasticity,
                "low": each.low,
                "high": each.high,
            }
            for each in found.worths
        ],
    }


def worth_table(found: "Worths") -> RenderableType:
    """What one percent more of each figure does, the most first."""
    title = Text(f"{found.name}: a step takes {duration(found.step)} without noise", style="bold")
    table = Table(box=None, pad_edge=False)
    for name in ("1 % more of", "is now", "changes the step by", "with less", "with more"):
        table.add_column(name, justify="left" if name == "1 % more of" else "right", no_wrap=True)
    for each in found.worths:
        shown = (each.elasticity, *each.sides)
        table.add_row(each.name, f"{each.number:.4g}", *(f"{one:+.4f} %" for one in shown))
    return Group(title, table)
