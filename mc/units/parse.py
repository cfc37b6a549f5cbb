"""From text to a float in SI units, strictly.

The number is read as an exact fraction and multiplied by the exact factor of its unit; only the product is
rounded. So a quantity means the same however it is spelt: `1500 ns`, `1.5 us` and `0.0015 ms` are one float.
"""

import math
import re
from fractions import Fraction

from mc.units.dimensions import Dimension, spellings
from mc.units.errors import UnitError
from mc.units.hints import explain

# A few digits of exponent reach every float; more would only ask for an astronomically large integer.
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*(\D.*)?", re.DOTALL)
_LONGEST = 100


def parse(text: str | int | float, dimension: Dimension) -> float:
    """Read a quantity.

    Args:
        text: what the user wrote, such as `"800 Gb/s"`. A plain number is a quantity only where a ratio is
            due.
        dimension: what it has to be.

    Returns:
        The value in the SI unit of the dimension: seconds, bytes, bytes/s, J/bit, J, W, FLOP, FLOP/s, m, 1/s,
        or the plain ratio.

    Raises:
        UnitError: the text is no such quantity; the message says what would do.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise UnitError(explain(text, dimension))
    written = text.strip() if isinstance(text, str) else _spell(text, dimension)
    match = _QUANTITY.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        raise UnitError(explain(text, dimension))
    number, unit = match[1], (match[2] or "").strip()
    factor = spellings(dimension).get(unit)
    if factor is None:
        raise UnitError(explain(text, dimension, number=number, unit=unit))
    exact = Fraction(number) * factor
    try:
        value = float(exact)
    except OverflowError:
        value = math.inf
    if math.isinf(value) or (value == 0 and exact != 0):
        raise UnitError(explain(text, dimension, out_of_range=True))
    return value


def _spell(number: int | float, dimension: Dimension) -> str:
    """The digits of a number, short of those so large that printing them is already an error."""
    if isinstance(number, int) and abs(number) >= 10**_LONGEST:
        raise UnitError(explain("an integer of over 100 digits", dimension, out_of_range=True))
    return repr(number)
