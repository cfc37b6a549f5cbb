"""Every spelling that is accepted, per dimension, with its exact factor to SI.

The tables are products of prefixes and unit symbols, written out once at import. Factors are fractions, so
that `1.2 us` becomes the float nearest to 1.2e-6 and not a neighbour of it.

Choices that matter in this field:

- `b`, `bit` and `bps` are bits, `B` is bytes; case decides, and nothing else does (`Gb/s` is an eighth of
  `GB/s`).
- `k M G T P E` are powers of 1000, `Ki Mi Gi Ti Pi Ei` of 1024 (IEC 80000-13), the latter for bytes and bits
  only.
- Energy is per `bit` or per `byte`, spelt out: in `pJ/b` one letter's case would hide a factor of eight.
- FLOP is a count and FLOP/s a rate; `FLOPS` is refused, since it is read as either.
"""

from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from functools import cache
from types import MappingProxyType

LARGE = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
BINARY = {f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)}
# Both code points of the micro sign: U+00B5 (keyboards) and U+03BC (the Greek letter that Unicode normalises
# it to).
MICRO = ("u", "\u00b5", "\u03bc")
SMALL = {
    "f": Fraction(1, 10**15),
    "p": Fraction(1, 10**12),
    "n": Fraction(1, 10**9),
    **dict.fromkeys(MICRO, Fraction(1, 10**6)),
    "m": Fraction(1, 10**3),
}


class Dimension(Enum):
    """What kind of quantity a text has to be; the value is the word used in messages.

    The SI unit that `parse` returns is given by `si`, and `examples` are the spellings a message offers.
    """

    TIME = "time"
    SIZE = "size"
    BANDWIDTH = "bandwidth"
    ENERGY_PER_BIT = "energy per bit"
    ENERGY = "energy"
    POWER = "power"
    COMPUTE = "amount of compute"
    COMPUTE_RATE = "rate of compute"
    LENGTH = "length"
    FREQUENCY = "frequency"
    RATIO = "ratio"

    @property
    def si(self) -> str:
        """The unit inside the program."""
        return _SI_AND_EXAMPLES[self][0]

    @property
    def examples(self) -> tuple[str, ...]:
        """Quantities of this dimension as they may be written."""
        return _SI_AND_EXAMPLES[self][1:]


_SI_AND_EXAMPLES: Mapping[Dimension, tuple[str, ...]] = {
    Dimension.TIME: ("s", "1.2 us", "3 ms", "10 s"),
    Dimension.SIZE: ("B", "64 MiB", "128 MB", "512 Mbit"),
    Dimension.BANDWIDTH: ("B/s", "900 GB/s", "800 Gb/s", "64 GiB/s"),
    Dimension.ENERGY_PER_BIT: ("J/bit", "5 pJ/bit", "40 pJ/byte"),
    Dimension.ENERGY: ("J", "3 J", "1.5 kWh"),
    Dimension.POWER: ("W", "700 W", "1.2 kW"),
    Dimension.COMPUTE: ("FLOP", "60 TFLOP", "2.5 PFLOP"),
    Dimension.COMPUTE_RATE: ("FLOP/s", "989 TFLOP/s", "1.2 PFLOP/s"),
    Dimension.LENGTH: ("m", "2 m", "5 mm", "40 km"),
    Dimension.FREQUENCY: ("Hz", "1.8 GHz", "50 Hz", "0.2 1/h"),
    Dimension.RATIO: ("", "0.45", "45 %"),
}


def _product(
    prefixes: Mapping[str, int | Fraction], symbols: Mapping[str, int | Fraction]
) -> dict[str, Fraction]:
    """Each symbol alone and with each of the prefixes."""
    every = {"": 1, **prefixes}
    return {
        p + symbol: Fraction(factor) * size for symbol, size in symbols.items() for p, factor in every.items()
    }


def _table(dimension: Dimension) -> dict[str, Fraction]:
    eighth = Fraction(1, 8)
    match dimension:
        case Dimension.TIME:
            return {**_product(SMALL, {"s": 1}), "min": Fraction(60), "h": Fraction(3600)}
        case Dimension.SIZE:
            return _product({**LARGE, **BINARY}, {"B": 1, "b": eighth, "bit": eighth})
        case Dimension.BANDWIDTH:
            per_second = {f"{size}/s": factor for size, factor in spellings(Dimension.SIZE).items()}
            return {**per_second, **_product(LARGE, {"bps": eighth})}
        case Dimension.ENERGY_PER_BIT:
            return _product(SMALL, {"J/bit": 1, "J/byte": eighth})
        case Dimension.ENERGY:
            return _product({**SMALL, **LARGE}, {"J": 1}) | _product(LARGE, {"Wh": 3600})
        case Dimension.POWER:
            return _product({**SMALL, **LARGE}, {"W": 1})
        case Dimension.COMPUTE:
            return _product({**LARGE, "Z": 10**21, "Y": 10**24}, {"FLOP": 1})
        case Dimension.COMPUTE_RATE:
            return _product({**LARGE, "Z": 10**21}, {"FLOP/s": 1})
        case Dimension.LENGTH:
            return _product({**SMALL, "c": Fraction(1, 100), "k": 1000}, {"m": 1})
        case Dimension.FREQUENCY:
            return _product(LARGE, {"Hz": 1}) | {
                "1/s": Fraction(1),
                "1/min": Fraction(1, 60),
                "1/h": Fraction(1, 3600),
            }
        case Dimension.RATIO:
            return {"": Fraction(1), "%": Fraction(1, 100)}


@cache
def spellings(dimension: Dimension) -> Mapping[str, Fraction]:
    """All unit spellings of a dimension, each with its exact factor to the SI unit.

    Args:
        dimension: the kind of quantity.

    Returns:
        A read-only mapping such as `{"s": 1, "us": 1/1000000, ...}`.
    """
    return MappingProxyType(_table(dimension))
