"""The report of `tailstep energy`."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.energy import Facility, StepEnergy
from mc.report.times import duration
from mc.units import Dimension, format_quantity

if TYPE_CHECKING:
    from mc.experiment.energy import Largest


def energy_json(name: str, found: StepEnergy, facility: Facility, most: "Largest") -> dict[str, Any]:
    """All of it as plain data, SI units in the keys."""
    return {
        "name": name,
        **_energy_json(found, facility),
        "facility": {"budget_w": facility.budget, "pue": facility.overhead},
        "largest": {
            "chips": most.chips,
            "design_watts_per_chip": most.design.watts_per_rank,
            "problem": most.problem,
            "step": None if most.energy is None else _energy_json(most.energy, facility),
        },
    }


def _energy_json(found: StepEnergy, facility: Facility) -> dict[str, Any]:
    return {
        "ranks": found.ranks,
        "step_s": found.seconds,
        "computing_s": found.computing,
        "joules_per_rank": {
            "idle": found.idle,
            "computing": found.busy,
            "host": found.host,
            "network": found.network,
            "total": found.per_rank,
        },
        "tiers": [
            {
                "name": tier.name,
                "bytes_per_rank": tier.bytes,
                "moved_j": tier.moved,
                "waiting_j": tier.waiting,
                "ports_j": tier.ports,
                "adapter_j": tier.adapter,
                "inside": tier.inside,
                "total_j": tier.total,
            }
            for tier in found.tiers
        ],
        "joules": found.total,
        "watts_per_rank": found.watts_per_rank,
        "tokens_per_s": found.tokens / found.seconds,
        "tokens_per_joule": found.tokens_per_joule,
        "tokens_per_facility_joule": found.tokens_per_joule / facility.overhead,
        "joules_per_flop": found.joules_per_flop,
        "share_of_budget": facility.share(found),
    }


def energy_table(name: str, found: StepEnergy, facility: Facility, most: "Largest") -> RenderableType:
    """The same for a terminal."""
    table = _table("a chip's part")
    for heading in ("a step", "power", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, joules in parts(found):
        table.add_row(name, *_row(joules, found))
    table.add_section()
    table.add_row("all", *_row(found.per_rank, found))
    links = _table("tier")
    for heading in ("bytes of a chip", "moving bits", "links waiting", "switch ports", "network card"):
        links.add_column(heading, justify="right", no_wrap=True)
    for tier in found.tiers:
        cells = [tier.moved] if tier.inside else [tier.moved, tier.waiting, tier.ports, tier.adapter]
        shown = [format_quantity(each, Dimension.ENERGY, digits=3) for each in cells]
        rest = ["in chips and hosts"] if tier.inside else []
        links.add_row(tier.name, format_quantity(tier.bytes, Dimension.SIZE, digits=3), *shown, *rest)
    return Group(
        Text(name, style="bold"),
        Text(
            f"{found.ranks:,} chips, {duration(found.seconds)} a step, {duration(found.computing)} of it computing"
        ),
        Text(),
        table,
        Text(),
        links,
        Text(),
        Text(_summary(found)),
        Text(_site(found, facility, most), style="bold"),
    )


def parts(found: StepEnergy) -> list[tuple[str, float]]:
    """Joules of a rank by what takes them; they add up to all."""
    own = [tier for tier in found.tiers if not tier.inside]
    return [
        ("chip, computing", found.busy),
        ("chip, idling", found.idle),
        ("host", found.host),
        ("network, moving bits", sum(tier.moved for tier in own)),
        ("network, links waiting", sum(tier.waiting for tier in own)),
        ("network, switch ports", sum(tier.ports for tier in own)),
        ("network cards", sum(tier.adapter for tier in own)),
    ]


def _row(joules: float, found: StepEnergy) -> tuple[str, str, str]:
    return (
        format_quantity(joules, Dimension.ENERGY, digits=3),
        format_quantity(joules / found.seconds, Dimension.POWER, digits=3),
        f"{100 * joules / found.per_rank:.1f} %",
    )


def _summary(found: StepEnergy) -> str:
    return (
        f"{format_quantity(found.total, Dimension.ENERGY, digits=4)} a step of all, {found.tokens_per_joule:.4g} tokens/J; computing "
        f"takes {found.joules_per_flop * 1e12:.3g} pJ/FLOP beyond idling."
    )


def _site(found: StepEnergy, facility: Facility, most: "Largest") -> str:
    budget = format_quantity(facility.budget, Dimension.POWER, digits=4)
    share = f"{100 * facility.share(found):.3g} % of {budget} with a PUE of {facility.overhead:g}."
    if not most.chips:
        return f"{share} {budget} feed no such cluster: {most.problem}."
    each = format_quantity(most.design.watts_per_rank, Dimension.POWER, digits=4)
    feed = f"{share} {budget} feed {most.chips:,} such chips, each of {each} while all compute"
    if most.energy is None:
        return f"{feed}; this plan does not do for them: {most.problem}. `--plans` searches all others."
    step = most.energy
    return (
        f"{feed}: {step.tokens / step.seconds:,.4g} tokens/s, {step.tokens_per_joule:.4g} tokens/J, "
        f"{duration(step.seconds)} a step of the same plan. `--plans` searches all others."
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
