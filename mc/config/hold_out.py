"""Which measurements a fit is not shown, to be scored on them.

none               all are fitted, none are scored
every 4            every fourth size of a curve, or every fourth time of a run
20 %               each with that chance; `20 % seed 3` draws others
ranks > 8          by the number of ranks: `>`, `<` or `=`; several after `=`, as in `ranks = 64, 128`
nodes > 4          by the number of nodes, likewise
size > 16 MiB      by the size of the message, likewise
file = b.log       of a file, by its path or name; several after commas
process = 3        of a process, where a file has times of each
"""

import random
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from mc.errors import InputError
from mc.units import Dimension, UnitError, parse

FORMS = (
    "`none`, `every 4`, `20 %`, `20 % seed 3`, `ranks > 8`, `ranks = 64, 128`, `nodes > 4`, `size > 16 MiB`, `file = b.log`, "
    "`process = 3`"
)
_BY = re.compile(r"(ranks|nodes|size|process)\s*(>|<|=)\s*(.+)")
_SHARE = re.compile(r"(\d{1,2}(?:\.\d{1,4})?)\s*%(?: seed (\d{1,9}))?")
Field = Literal["none", "every", "share", "ranks", "nodes", "size", "file", "process"]
_FIELDS: dict[str, Field] = {"ranks": "ranks", "nodes": "nodes", "size": "size", "process": "process"}


@dataclass(frozen=True)
class HoldOut:
    """A rule.

    Attributes:
        field: what it looks at.
        relation: how the field of a row that is held out compares.
        values: with what; of `every`, the distance; of `share`, the chance and the seed.
        names: of files.
    """

    field: Field
    relation: str
    values: tuple[float, ...]
    names: tuple[str, ...] = ()

    def holds(
        self,
        ranks: float | None,
        size: float | None,
        place: int = 0,
        *,
        nodes: float | None = None,
        file: str | None = None,
        process: float | None = None,
        curve: str = "",
    ) -> bool:
        """Whether a measurement is held out.

        Args:
            ranks: that took part.
            size: of the message, bytes.
            place: among those of its curve or run, from 0.
            nodes: that the ranks were on.
            file: that states it.
            process: whose time it is.
            curve: that it is part of; a share is drawn in each anew.
        """
        if self.field == "none":
            return False
        if self.field == "every":
            return place % int(self.values[0]) == int(self.values[0]) - 1
        if self.field == "share":
            chance, seed = self.values
            # A text as seed gives the same draws everywhere.
            return random.Random(f"{seed:.0f} {curve} {place}").random() < chance
        if self.field == "file":
            return file is not None and (file in self.names or PurePath(file).name in self.names)
        value = {"ranks": ranks, "nodes": nodes, "size": size, "process": process}[self.field]
        if value is None:
            return False
        if self.relation == "=":
            return value in self.values
        return value > self.values[0] if self.relation == ">" else value < self.values[0]


def parse_hold_out(text: str) -> HoldOut:
    """The rule that a text states.

    Raises:
        InputError: it is none.
    """
    plain = " ".join(text.split())
    if plain == "none":
        return HoldOut("none", "", ())
    every = re.fullmatch(r"every (\d{1,6})", plain)
    if every is not None and int(every[1]) >= 2:
        return HoldOut("every", "", (float(every[1]),))
    share = _SHARE.fullmatch(plain)
    if share is not None and float(share[1]) > 0:
        return HoldOut("share", "", (float(share[1]) / 100, float(share[2] or 0)))
    file = re.fullmatch(r"file\s*=\s*(.+)", plain)
    if file is not None:
        names = tuple(each.strip() for each in file[1].split(","))
        if all(names):
            return HoldOut("file", "=", (), names)
    found = _BY.fullmatch(plain)
    if found is not None:
        field, relation, rest = found.groups()
        pieces = [each.strip() for each in rest.split(",")] if relation == "=" else [rest]
        values = [_value(field, each) for each in pieces]
        if all(each is not None for each in values):
            return HoldOut(_FIELDS[field], relation, tuple(each for each in values if each is not None))
    raise InputError(f"hold_out: expected one of {FORMS}; got `{text}`")


def _value(field: str, text: str) -> float | None:
    if field != "size":
        digits = text.replace(",", "").replace("_", "")
        return float(digits) if digits.isdecimal() else None
    try:
        return parse(text, Dimension.SIZE)
    except UnitError:
        return None
