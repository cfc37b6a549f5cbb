"""Times for people: one unit and one number of decimals for all that is compared.

The unit follows the typical time; the decimals follow the tightest interval, which keeps two digits: an
interval that prints as [152 us, 152 us] would say nothing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mc.estimate import Estimate

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class TimeScale:
    """A unit of time and a number of decimals.

    Attributes:
        unit: its name.
        seconds: its size.
        decimals: digits after the point.
    """

    unit: str
    seconds: float
    decimals: int

    def number(self, time: float) -> str:
        """`time` (seconds) as a number in this unit; `unbounded` where it is infinite."""
        return f"{time / self.seconds:,.{self.decimals}f}" if math.isfinite(time) else UNBOUNDED

    def text(self, time: float) -> str:
        """`time` (seconds) with its unit."""
        return f"{self.number(time)} {self.unit}"


def scale_for(estimates: Iterable[Estimate]) -> TimeScale:
    """The scale in which all `estimates` (seconds) can be read together.

    The unit suits the largest; the decimals show two digits of the narrowest interval with a width, or, if
    all are exact, four digits of the largest; never beyond nine digits in all.
    """
    estimates = list(estimates)
    largest = max((abs(found.value) for found in estimates), default=0.0)
    name, size = next(((name, size) for name, size in UNITS if largest >= size), UNITS[-1])
    widths = [found.high - found.low for found in estimates if 0.0 < found.high - found.low < math.inf]
    digits = (
        2 - _digits_before_point(min(widths) / size) if widths else 4 - _digits_before_point(largest / size)
    )
    most = 9 - _digits_before_point(largest / size)
    return TimeScale(name, size, max(min(digits, most), 0))


def duration(seconds: float) -> str:
    """A single time with three digits: `1.23 s`, `45.6 us`; from ten minutes on in minutes and hours."""
    if seconds >= 36000:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 600:
        return f"{seconds / 60:.1f} min"
    if seconds == 0:
        return "0 s"
    exact = Estimate(seconds, seconds, seconds)
    scale = scale_for([exact])
    return TimeScale(scale.unit, scale.seconds, max(scale.decimals - 1, 0)).text(seconds)


def _digits_before_point(number: float) -> int:
    """Digits before the decimal point; zero or negative for leading zeros after it (0.02 -> -1)."""
    return math.floor(math.log10(number)) + 1 if number > 0.0 else 1
