"""`tailstep catalog`: what is known of chips and links, and from where."""

import json
from typing import Annotated, Any, Literal

import typer

from mc.catalog import Chip, LinkFigures, UnknownName, chips, links
from mc.document import did_you_mean


def catalog(
    name: Annotated[
        str | None, typer.Argument(help="A chip or link; all of them if left out.", show_default=False)
    ] = None,
    kind: Annotated[Literal["chips", "links"] | None, typer.Option(help="Only chips, or only links.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, figures in SI units.")] = False,
) -> None:
    """List the chips and links that configurations can name, or show one with the source of each figure."""
    entries = _select(name, kind)
    if as_json:
        print(json.dumps([_plain(entry) for entry in entries], indent=2))
    else:
        _show(entries, in_full=name is not None)


def _select(name: str | None, kind: str | None) -> list[Chip | LinkFigures]:
    known: dict[str, Chip | LinkFigures] = {}
    if kind != "links":
        known |= chips()
    if kind != "chips":
        known |= links()
    if name is None:
        return list(known.values())
    if name not in known:
        what = {"chips": "chip", "links": "link"}.get(kind or "", "chip or link")
        raise UnknownName(f"unknown {what} `{name}`; {did_you_mean(name, known, most=len(known))}")
    return [known[name]]


def _plain(entry: Chip | LinkFigures) -> dict[str, Any]:
    """An entry as JSON: its fields, and its figures by dotted name."""
    fields = entry.model_dump(exclude={"peak", "protocols", "efficiency", *entry.figures}, exclude_none=True)
    if isinstance(entry, LinkFigures):
        fields["bandwidth_per_direction"] = entry.bandwidth_per_direction
        if entry.protocols is not None:
            fields["protocols"] = [each.values() for each in entry.protocols.protocols]
    figures = {
        key: {
            "value": figure.value,
            "unit": figure.dimension.si,
            "text": figure.text,
            "estimate" if figure.is_estimate else "source": figure.origin,
        }
        for key, figure in entry.figures.items()
    }
    return {"kind": "chip" if isinstance(entry, Chip) else "link", **fields, "figures": figures}


def _show(entries: list[Chip | LinkFigures], *, in_full: bool) -> None:
    # Takes a tenth of a second, which --json and --help need not wait for.
    from rich.console import Console

    from mc.catalog import tables

    console = Console(highlight=False, markup=False)
    if not (in_full and console.is_terminal):
        # A pipe has no width (rich takes 80), and in a narrow terminal lines better wrap than lose figures.
        console.width = max(console.width, tables.WIDTH)
    if in_full:
        console.print(tables.entry_table(entries[0]))
        return
    found_chips = [entry for entry in entries if isinstance(entry, Chip)]
    found_links = [entry for entry in entries if isinstance(entry, LinkFigures)]
    if found_chips:
        console.print(tables.chips_table(found_chips), "")
    if found_links:
        console.print(tables.links_table(found_links), "")
    console.print(tables.FOOTNOTE)
