"""The Python API as a page: every public name, for mkdocstrings to fill in from the sources, which it does not import."""

import mc

_ABOUT = {
    "mc.config": "Files to validated configurations.",
    "mc.delays": "Random times and their algebra.",
    "mc.experiment": "From configurations to results.",
    "mc.fabric": "Links, tiers, clusters.",
    "mc.collectives": "Algorithms and their closed forms.",
    "mc.units": "Quantities as text.",
}


def page() -> str:
    """All of `mc.__init__`, package by package."""
    parts = [
        "# Python",
        "The names that `import mc` offers, each looked up when it is first used. Everything else is imported "
        "from its package, as in `from mc.catalog import chip`. By example: [quick start](../quickstart.md).",
    ]
    for package, names in mc._NAMES.items():
        parts.append(f"## {package}\n\n{_ABOUT.get(package, '')}".strip())
        parts += [f"::: {package}.{name}" for name in names]
    return "\n\n".join(parts) + "\n"
