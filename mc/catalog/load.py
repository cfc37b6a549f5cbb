"""Reads the data files, once, and finds entries in them.

Ids are exact, so that a configuration names a thing in one way only; the message about an unknown one knows
the nearest.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from mc.catalog.chip import Chip
from mc.catalog.efficiency import EfficiencyFigures
from mc.catalog.link import LinkFigures
from mc.catalog.protocol import ProtocolTable
from mc.document import Document, Node, StrictModel, did_you_mean, located, read, validate
from mc.errors import InputError

DATA = Path(__file__).parent / "data"
Entry = TypeVar("Entry", Chip, LinkFigures)


class UnknownName(InputError):
    """The catalog has no entry of this id; the message suggests one."""


class ChipsFile(StrictModel):
    """The content of `chips.yaml`."""

    chips: Annotated[tuple[Chip, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _check_ids(self) -> "ChipsFile":
        _refuse_repeats("chips", [chip.id for chip in self.chips])
        return self


class LinksFile(StrictModel):
    """The content of `links.yaml`."""

    links: Annotated[tuple[LinkFigures, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _check_ids(self) -> "LinksFile":
        _refuse_repeats("links", [link.id for link in self.links])
        return self


class ProtocolsFile(StrictModel):
    """The content of `protocols.yaml`."""

    tables: Annotated[tuple[ProtocolTable, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _check_ids(self) -> "ProtocolsFile":
        _refuse_repeats("tables", [table.id for table in self.tables])
        return self


class EfficienciesFile(StrictModel):
    """The content of `efficiencies.yaml`."""

    sets: Annotated[tuple[EfficiencyFigures, ...], Field(strict=False)]

    @model_validator(mode="after")
    def _check_ids(self) -> "EfficienciesFile":
        _refuse_repeats("sets", [each.id for each in self.sets])
        return self


def _refuse_repeats(key: str, ids: Sequence[str]) -> None:
    found = [
        ((key, index, "id"), f"expected another id; `{name}` is taken")
        for index, name in enumerate(ids)
        if name in ids[:index]
    ]
    if found:
        raise located("Catalog", found)


@cache
def chips() -> Mapping[str, Chip]:
    """All chips by id, in the order of the file."""
    document = with_efficiencies(read(DATA / "chips.yaml"), read(DATA / "efficiencies.yaml"))
    return MappingProxyType({each.id: each for each in validate(document, ChipsFile).chips})


@cache
def links() -> Mapping[str, LinkFigures]:
    """All links by id, innermost tier first."""
    document = with_protocols(read(DATA / "links.yaml"), read(DATA / "protocols.yaml"))
    return MappingProxyType({each.id: each for each in validate(document, LinksFile).links})


def with_protocols(links: Document, protocols: Document) -> Document:
    """The document of links with the protocol tables in the place of their ids.

    An id that no table has stays, and is refused as a table that is none.
    """
    validate(protocols, ProtocolsFile)
    return _joined(links, "links", "protocols", _items(protocols, "tables"))


def with_efficiencies(chips: Document, efficiencies: Document) -> Document:
    """The document of chips with the sets of efficiencies in the place of their ids, likewise."""
    validate(efficiencies, EfficienciesFile)
    return _joined(chips, "chips", "efficiency", _items(efficiencies, "sets"))


def _joined(document: Document, listed: str, key: str, tables: list[Node]) -> Document:
    """The document whose `listed` entries have a table in the place of the id that they give as `key`."""
    named = {str(table.mapping["id"].value): table for table in tables if table.mapping is not None}

    def joined(entry: Node) -> Node:
        entries = entry.mapping
        name = None if entries is None or key not in entries else entries[key].value
        if entries is None or not isinstance(name, str) or name not in named:
            return entry
        return Node({**entries, key: named[name]}, entry.position, entry.key_position)

    root = document.root.mapping or {}
    items = [joined(entry) for entry in _items(document, listed)]
    replaced = Node(items, root[listed].position, root[listed].key_position)
    whole = Node({**root, listed: replaced}, document.root.position, document.root.key_position)
    return Document(document.file, whole)


def _items(document: Document, key: str) -> list[Node]:
    value = (document.root.mapping or {})[key].value
    return value if isinstance(value, list) else []


def chip(name: str) -> Chip:
    """The chip of this id.

    Raises:
        UnknownName: there is none.
    """
    return _find("chip", name, chips())


def link(name: str) -> LinkFigures:
    """The link of this id.

    Raises:
        UnknownName: there is none.
    """
    return _find("link", name, links())


def _find(kind: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    try:
        return entries[name]
    except KeyError:
        raise UnknownName(f"unknown {kind} `{name}`; {did_you_mean(name, entries)}") from None
