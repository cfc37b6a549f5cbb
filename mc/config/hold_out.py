"""Which measurements a fit is not shown, to be scored on them.

none               all are fitted, none are scored
every 4            every fourth size of a curve, or every fourth step time of a run
ranks > 8          by the number of ranks: `>`, `<` or `=`; several after `=`, as in `ranks = 64, 128`
size > 16 MiB      by the size of the message, likewise
"""

import re
from dataclasses import dataclass
from typing import Literal

from mc.errors import InputError
from mc.units import Dimension, UnitError, parse

FORMS = "`none`, `every 4`, `ranks > 8`, `ranks = 64, 128`, `size > 16 MiB`"
_BY = re.compile(r"(ranks|size)\s*(>|<|=)\s*(.+)")


@dataclass(frozen=True)
class HoldOut:
    """A rule.

    Attributes:
        field: what it looks at.
        relation: how the field of a row that is held out compares.
        values: with what; of `every`, the distance.
    """

    field: Literal["none", "every", "ranks", "size"]
    relation: str
    values: tuple[float, ...]

    def holds(self, ranks: float | None, size: float | None, place: int = 0) -> bool:
        """Whether a measurement is held out.

        Args:
            ranks: that took part.
            size: of the message, bytes.
            place: among those of its curve or run, from 0.
        """
        if self.field == "none":
            return False
        if self.field == "every":
            return place % int(self.values[0]) == int(self.values[0]) - 1
        value = ranks if self.field == "ranks" else size
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
    found = _BY.fullmatch(plain)
    if found is not None:
        field, relation, rest = found.groups()
        pieces = [each.strip() for each in rest.split(",")] if relation == "=" else [rest]
        values = [_value(field, each) for each in pieces]
        if all(each is not None for each in values):
            return HoldOut(
                "ranks" if field == "ranks" else "size",
                relation,
                tuple(each for each in values if each is not None),
            )
    raise InputError(f"hold_out: expected one of {FORMS}; got `{text}`")


def _value(field: str, text: str) -> float | None:
    if field == "ranks":
        digits = text.replace(",", "").replace("_", "")
        return float(digits) if digits.isdecimal() else None
    try:
        return parse(text, Dimension.SIZE)
    except UnitError:
        return None
