"""The catalog's entries as the values of a configuration, without their sources."""

from typing import Any, Literal

from mc import catalog
from mc.units import Dimension, format_quantity


def ids(kind: Literal["chip", "link"]) -> list[str]:
    """All ids of a kind, in the catalog's order."""
    return list(catalog.chips() if kind == "chip" else catalog.links())


def figures(kind: Literal["chip", "link"], name: str) -> dict[str, Any] | str:
    """The inline mapping that an id stands for, or what is wrong with the id."""
    try:
        return _chip(name) if kind == "chip" else _link(name)
    except catalog.UnknownName as error:
        return str(error)


def _link(name: str) -> dict[str, Any]:
    link = catalog.link(name)
    if link.latency is None:
        raise catalog.UnknownName(f"the catalog has no latency for `{name}`; state the link inline")
    return _given(
        name=name,
        bandwidth=_text(link.bandwidth, Dimension.BANDWIDTH),
        duplex=link.duplex,
        latency=_text(link.latency, Dimension.TIME),
        energy=_text(link.energy_per_bit, Dimension.ENERGY_PER_BIT),
        reach=_text(link.reach, Dimension.LENGTH),
    )


def _chip(name: str) -> dict[str, Any]:
    chip = catalog.chip(name)
    return _given(
        name=name,
        peak={
            number_format: _text(figure, Dimension.COMPUTE_RATE)
            for number_format, figure in chip.peak.items()
        },
        memory_size=_text(chip.memory_size, Dimension.SIZE),
        memory_bandwidth=_text(chip.memory_bandwidth, Dimension.BANDWIDTH),
        power=_text(chip.power, Dimension.POWER),
    )


def _text(figure: catalog.Figure | None, dimension: Dimension) -> str | None:
    return None if figure is None else format_quantity(figure.value, dimension)


def _given(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}
