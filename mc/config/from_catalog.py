"""The catalog's entries as the values of a configuration, without their sources."""

from typing import Any, Literal

from mc import catalog


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
    return _given(
        name=name,
        bandwidth=_text(link.bandwidth),
        duplex=link.duplex,
        latency=_text(link.latency),
        energy=_text(link.energy_per_bit),
        adapter_power=_text(link.adapter_power),
        port_power=_text(link.port_power),
        reach=_text(link.reach),
        protocols=None if link.protocols is None else [each.values() for each in link.protocols.protocols],
    )


def _chip(name: str) -> dict[str, Any]:
    chip = catalog.chip(name)
    return _given(
        name=name,
        peak={number_format: _text(figure) for number_format, figure in chip.peak.items()},
        memory_size=_text(chip.memory_size),
        memory_bandwidth=_text(chip.memory_bandwidth),
        power=_text(chip.power),
        idle_power=_text(chip.idle_power),
        host_power=_text(chip.host_power),
        efficiency=None if chip.efficiency is None else chip.efficiency.values(),
    )


def _text(figure: catalog.Figure | None) -> str | None:
    return None if figure is None else figure.text


def _given(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}
