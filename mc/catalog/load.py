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
    return MappingProxyType({each.id: each for each in validate(read(DATA / "chips.yaml"), ChipsFile).chips})


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
    tables = {
        str(table.mapping["id"].value): table
        for table in _items(protocols, "tables")
        if table.mapping is not None
    }

    def joined(link: Node) -> Node:
        entries = link.mapping
        table = None if entries is None or "protocols" not in entries else entries["protocols"].value
        if entries is None or not isinstance(table, str) or table not in tables:
            return link
        return Node({**entries, "protocols": tables[table]}, link.position, link.key_position)

    root = links.root.mapping or {}
    items = [joined(link) for link in _items(links, "links")]
    listed = Node(items, root["links"].position, root["links"].key_position)
    return Document(links.file, Node({**root, "links": listed}, links.root.position, links.root.key_position))


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
