"""The catalog on a terminal: one table per kind, and one entry in full.

Imported by the command line only, since rich takes its time. The tables are laid out for 100 columns; figures
are rounded, and a `~` marks estimates. Their origins are shown with the single entry.
"""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.catalog.chip import Chip, NumberFormat
from mc.catalog.figure import Figure
from mc.catalog.link import LinkFigures
from mc.units import Dimension, format_quantity

FOOTNOTE = "~ marks estimates. `tailstep catalog NAME` shows one entry with the source of each figure."
# What the widest table needs.
WIDTH = 100
PEAKS: tuple[NumberFormat, ...] = ("bf16", "fp8", "fp4")
DIRECTIONS = {"sum": "both directions added", "each": "one direction"}


def chips_table(chips: Iterable[Chip]) -> RenderableType:
    """All chips: the peaks that matter for training and inference, memory, power, link."""
    table = _table("chip", "vendor", "year", "scale-up link")
    for heading in (*(f"{name}\nTFLOP/s" for name in PEAKS), "memory\nGB", "bandwidth\nTB/s", "power\nW"):
        table.add_column(heading, no_wrap=True, justify="right")
    for chip in chips:
        peaks = [_number(chip.peak.get(name), 1e12) for name in PEAKS]
        memory = [
            _number(chip.memory_size, 1e9),
            _number(chip.memory_bandwidth, 1e12),
            _number(chip.power, 1),
        ]
        table.add_row(chip.id, chip.vendor, str(chip.year), chip.scale_up_link or "-", *peaks, *memory)
    return Group(Text("Chips (dense peaks)", style="bold"), table)


def links_table(links: Iterable[LinkFigures]) -> RenderableType:
    """All links, innermost tier first."""
    table = _table("link", "tier", "per", "vendor's\nfigure", "per\ndirection")
    for heading in ("latency", "energy\npJ/bit", "reach"):
        table.add_column(heading, no_wrap=True, justify="right")
    for link in links:
        mark = "~" if link.bandwidth.is_estimate else ""
        derived = format_quantity(link.bandwidth_per_direction, Dimension.BANDWIDTH, digits=4)
        quoted = f"{_short(link.bandwidth)} {link.duplex}"
        rest = [_short(link.latency), _number(link.energy_per_bit, 1e-12), _short(link.reach)]
        table.add_row(link.id, link.tier, link.per, quoted, mark + derived, *rest)
    return Group(Text("Links", style="bold"), table)


def entry_table(entry: Chip | LinkFigures) -> RenderableType:
    """One entry with all it has, each figure with its origin."""
    facts = Table.grid(padding=(0, 2, 0, 0))
    for key, value in _facts(entry).items():
        facts.add_row(Text(key, style="dim"), Text(value))
    table = _table("figure", "value", "origin")
    table.columns[2].no_wrap = False
    table.columns[2].overflow = "fold"
    for key, figure in entry.figures.items():
        kind = "estimate" if figure.is_estimate else "source"
        table.add_row(key, _exact(figure), f"{kind}: {figure.origin}")
        if isinstance(entry, LinkFigures) and key == "bandwidth":
            derived = format_quantity(entry.bandwidth_per_direction, Dimension.BANDWIDTH)
            counted = f"derived: the figure above counts {DIRECTIONS[entry.duplex]}"
            table.add_row("per direction", derived, counted)
    parts: list[RenderableType] = [Text(f"{entry.id}: {entry.name}", style="bold"), facts, Text(), table]
    return Group(*parts, Text(), Text(f"Note: {entry.note}")) if entry.note else Group(*parts)


def _facts(entry: Chip | LinkFigures) -> dict[str, str]:
    if isinstance(entry, Chip):
        links = {"scale-up link": entry.scale_up_link, "scale-out link": entry.scale_out_link}
        named = {key: name for key, name in links.items() if name}
        return {"vendor": entry.vendor, "year": str(entry.year), **named}
    return {"tier": entry.tier, "bandwidth of": f"one {entry.per}"}


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def _short(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return ("~" if figure.is_estimate else "") + format_quantity(figure.value, figure.dimension, digits=4)


def _number(figure: Figure | None, unit: float) -> str:
    if figure is None:
        return "-"
    return f"{'~' if figure.is_estimate else ''}{figure.value / unit:,.6g}"


def _exact(figure: Figure) -> str:
    return ("~" if figure.is_estimate else "") + figure.text
