"""From an SI float to the text that reads best and parses back to the same float.

The digits are the shortest that identify the float (Python's `repr`), moved by the power of ten of the unit
in exact decimal arithmetic, so nothing is lost on the way. Sizes may also be written with binary prefixes;
the shorter text wins, which turns 67108864 into `64 MiB` and leaves `80 GB` alone.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

from mc.units.dimensions import BINARY, Dimension, spellings
from mc.units.errors import UnitError

# Enough digits for an exact shift of any float.
_EXACT = Context(prec=400)

_LADDERS: dict[Dimension, tuple[str, ...]] = {
    Dimension.TIME: ("s", "ms", "us", "ns", "ps"),
    Dimension.SIZE: ("PB", "TB", "GB", "MB", "kB", "B"),
    Dimension.BANDWIDTH: ("PB/s", "TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    Dimension.ENERGY_PER_BIT: ("J/bit", "mJ/bit", "uJ/bit", "nJ/bit", "pJ/bit", "fJ/bit"),
    Dimension.ENERGY: ("TJ", "GJ", "MJ", "kJ", "J", "mJ", "uJ", "nJ", "pJ"),
    Dimension.POWER: ("GW", "MW", "kW", "W", "mW", "uW"),
    Dimension.COMPUTE: ("YFLOP", "ZFLOP", "EFLOP", "PFLOP", "TFLOP", "GFLOP", "MFLOP", "kFLOP", "FLOP"),
    Dimension.COMPUTE_RATE: (
        "ZFLOP/s",
        "EFLOP/s",
        "PFLOP/s",
        "TFLOP/s",
        "GFLOP/s",
        "MFLOP/s",
        "kFLOP/s",
        "FLOP/s",
    ),
    Dimension.LENGTH: ("km", "m", "mm", "um", "nm"),
    Dimension.FREQUENCY: ("GHz", "MHz", "kHz", "Hz"),
    Dimension.RATIO: ("",),
}
_POWERS = tuple(2**0 if not name else BINARY[name] for name in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"))


def format_quantity(value: float, dimension: Dimension, *, digits: int | None = None) -> str:
    """Write a quantity with a unit.

    Args:
        value: in the SI unit of the dimension, finite.
        dimension: what it is.
        digits: significant digits to round to, for people; None keeps the float exactly, for files.

    Returns:
        Text such as `"100 GB/s"`; with `digits=None`, `parse` returns exactly `value` from it.

    Raises:
        UnitError: `value` is not finite.
    """
    value = float(value)
    if not math.isfinite(value):
        raise UnitError(f"expected a finite {dimension.value}; got {value!r}")
    decimal = Decimal(repr(value))
    if digits is not None:
        decimal = Context(prec=digits).create_decimal(decimal)
    if decimal == 0:
        return f"0 {dimension.si}".strip()
    unit = _decimal_unit(decimal, dimension)
    text = _join(decimal, spellings(dimension)[unit], unit)
    if dimension is Dimension.SIZE:
        for name, power in zip(("EiB", "PiB", "TiB", "GiB", "MiB", "KiB"), _POWERS, strict=True):
            whole, rest = divmod(Fraction(decimal), power)
            if rest == 0 and len(f"{whole} {name}") < len(text):
                return f"{whole} {name}"
    return text


def _decimal_unit(decimal: Decimal, dimension: Dimension) -> str:
    """The largest unit of the ladder that leaves at least one, or else its smallest."""
    ladder = _LADDERS[dimension]
    for unit in ladder:
        if abs(Fraction(decimal)) >= spellings(dimension)[unit]:
            return unit
    return ladder[-1]


def _join(decimal: Decimal, factor: Fraction, unit: str) -> str:
    shifted = _EXACT.divide(
        _EXACT.multiply(decimal, Decimal(factor.denominator)), Decimal(factor.numerator)
    ).normalize(_EXACT)
    plain = f"{shifted:f}"
    # Twenty digits of zeros help nobody; `str` turns to an exponent.
    number = plain if len(plain) <= 20 else str(shifted)
    return f"{number} {unit}".strip()
