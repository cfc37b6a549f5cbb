"""The catalog as a page: every figure of every chip and link, with its source or the reason for an estimate."""

from mc.catalog import Chip, LinkFigures, chips, links


def page() -> str:
    """All entries as Markdown."""
    entries = [*chips().values(), *links().values()]
    figures = [figure for entry in entries for figure in entry.figures.values()]
    estimates = sum(figure.is_estimate for figure in figures)
    parts = [
        "# Figures of the catalog",
        f"Generated from `mc/catalog/data`: {len(figures)} figures of {len(chips())} chips and {len(links())} links. "
        f"{len(figures) - estimates} have a source; {estimates} are estimates, marked `~`, with the reason and the range. "
        "What a figure means: [Catalog](../catalog.md).",
        "## Chips",
        *map(section, chips().values()),
        "## Links",
        *map(section, links().values()),
    ]
    return "\n\n".join(parts) + "\n"


def section(entry: Chip | LinkFigures) -> str:
    """One chip or link."""
    rows = ["| figure | value | from |", "|---|---|---|"]
    for name, figure in entry.figures.items():
        mark = "~ " if figure.is_estimate else ""
        cells = (f"`{name}`", mark + figure.text, figure.origin)
        rows.append("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |")
    note = getattr(entry, "note", None)
    return "\n\n".join(filter(None, (f"### {entry.id}", entry.name + ".", note, "\n".join(rows))))
