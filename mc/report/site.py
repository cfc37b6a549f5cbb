"""The report of `tailstep energy --plans`: what a facility feeds, the best plans on it, and where its power goes."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.energy import Facility, StepEnergy
from mc.report.advise import SIZES, counts, plan_cells, plan_json
from mc.units import Dimension, format_quantity

if TYPE_CHECKING:
    from mc.advise.site import Planned, Site

LABELS = {
    "computing": "chips, computing",
    "idling": "chips, idling",
    "hosts": "hosts",
    "network": "network",
    "facility": "facility (cooling, conversion)",
    "reserve": "not drawn",
}


def shares(facility: Facility, energy: StepEnergy) -> dict[str, float]:
    """Of the budget, what takes it; they add up to 1 as long as the budget suffices."""
    watts = energy.ranks / energy.seconds / facility.budget
    found = {
        "computing": energy.busy * watts,
        "idling": energy.idle * watts,
        "hosts": energy.host * watts,
        "network": energy.network * watts,
        "facility": energy.per_rank * watts * (facility.overhead - 1),
    }
    return {**found, "reserve": 1.0 - sum(found.values())}


def site_json(found: "Site") -> dict[str, Any]:
    """All of it as plain data, SI units in the keys."""
    job = found.job
    return {
        "name": job.config.name,
        "facility": {"budget_w": job.facility.budget, "pue": job.facility.overhead},
        "chips": job.chips,
        "design_watts_per_chip": job.design.watts_per_rank,
        "design_shares": shares(job.facility, job.design),
        "ranks": job.config.ranks,
        "wanted": found.wanted,
        "best": [_planned_json(job.facility, each) for each in found.plans],
        "written": None if found.written is None else _planned_json(job.facility, found.written),
        "plans": found.search.total,
        "refused": found.search.refused,
        "pruned": found.search.pruned,
        "evaluated": found.search.evaluated,
    }


def _planned_json(facility: Facility, one: "Planned") -> dict[str, Any]:
    energy = one.energy
    return {
        **plan_json(one.found),
        "tokens_per_s": energy.tokens / energy.seconds,
        "tokens_per_joule": energy.tokens_per_joule,
        "tokens_per_facility_joule": energy.tokens_per_joule / facility.overhead,
        "watts_per_rank": energy.watts_per_rank,
        "shares": shares(facility, energy),
    }


def site_table(found: "Site") -> RenderableType:
    """The same for a terminal."""
    job = found.job
    each = format_quantity(job.design.watts_per_rank, Dimension.POWER, digits=4)
    budget = format_quantity(job.facility.budget, Dimension.POWER, digits=4)
    return Group(
        Text(f"{job.config.name}: {budget} with a PUE of {job.facility.overhead:g}", style="bold"),
        Text(f"{job.chips:,} chips of {each} while all compute; a job on {job.config.ranks:,} of them"),
        Text(),
        _plans(found),
        Text(),
        _shares(found),
        *counts(found.search),
    )


def _plans(found: "Site") -> Table:
    table = Table(box=None, pad_edge=False)
    left = ("", "schedule", "again", "order")
    for name in ("", *SIZES, "batch", "schedule", "again", "ZeRO", "order", "step", "MFU", "memory"):
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for name in ("tokens/s", "tokens/J", "W per chip"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(str(place), each) for place, each in enumerate(found.plans, 1)]
    if found.written is not None:
        rows.append(("file", found.written))
    for name, each in rows:
        energy = each.energy
        table.add_row(
            *plan_cells(name, each.found),
            f"{energy.tokens / energy.seconds:,.4g}",
            f"{energy.tokens_per_joule:.4g}",
            f"{energy.watts_per_rank:,.0f}",
        )
    return table


def _shares(found: "Site") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("of the budget")
    table.add_column("while all compute", justify="right")
    table.add_column("in a step of the best plan", justify="right")
    facility = found.job.facility
    both = shares(facility, found.job.design), shares(facility, found.plans[0].energy)
    for name, label in LABELS.items():
        table.add_row(label, *(f"{100 * each[name]:.1f} %" for each in both))
    return table
