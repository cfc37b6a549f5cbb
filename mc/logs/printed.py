"""Numbers as they were printed: a value and how far its rounding may have moved it.

A figure printed as `12.34` was between 12.335 and 12.345. So whether size, time and bandwidths of a row can
have been measured together needs no tolerance: the interval of size/time and that of algbw must meet, and
likewise factor × algbw and busbw. Programs that truncate move a figure by a whole unit of its last place,
which is what is allowed.
"""

import math
import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?(?:\d+\.?(?P<decimals>\d*)|\.(?P<rest>\d+))(?:[eE](?P<exponent>[+-]?\d{1,3}))?")


@dataclass(frozen=True)
class Printed:
    """A printed number.

    Attributes:
        value: as printed.
        low: the least that prints so.
        high: the most.
    """

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Printed":
        """The same in another unit."""
        return Printed(self.value * factor, self.low * factor, self.high * factor)


def printed(text: str) -> Printed | None:
    """A number and its rounding; None if the text is no finite number."""
    match = _NUMBER.fullmatch(text) if len(text) < 40 else None
    if match is None:
        return None
    value = float(text)
    if not math.isfinite(value):
        return None
    places = len(match["decimals"] or match["rest"] or "") - int(match["exponent"] or 0)
    unit = 10.0**-places
    return Printed(value, value - unit, value + unit)


def exactly(value: float) -> Printed:
    """A number in full precision, as JSON has it: six decimals at least."""
    slack = 1e-6 + 1e-6 * abs(value)
    return Printed(value, value - slack, value + slack)


def meets(low: float, high: float, other: Printed) -> bool:
    """Whether two intervals have a number in common."""
    return low <= other.high and other.low <= high
