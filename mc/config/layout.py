"""How many units there are, and which ranks are in each, where units may differ in size.

A tier's fan-out is one number if all its units are alike, else one number per unit, counted through the whole
cluster. The outermost tier is one unit; each tier has as many units as the next one joins in all. Plain
Python, so that a file is checked at once.
"""

import itertools
import math
from collections.abc import Sequence

FanOut = int | tuple[int, ...]


def counts(fan_outs: Sequence[FanOut]) -> tuple[int, ...]:
    """How many ranks there are, then how many units each tier has, innermost first.

    With fan-outs (8, 32, 4): 1024 ranks, 128 units of the first tier, 4, 1.
    """
    found = [1]
    for fan_out in reversed(fan_outs):
        found.append(fan_out * found[-1] if isinstance(fan_out, int) else sum(fan_out))
    return tuple(reversed(found))


def size(fan_outs: Sequence[FanOut]) -> int:
    """How many ranks there are."""
    return counts(fan_outs)[0]


def size_text(fan_outs: Sequence[FanOut]) -> str:
    """The size with its arithmetic: `8 x 32 x 4 = 1024`; with units of several sizes `7-8 x 32 = 255`."""
    factors = " x ".join(
        str(each) if isinstance(each, int) else f"{min(each)}-{max(each)}" for each in fan_outs
    )
    return f"{factors} = {size(fan_outs)}" if len(fan_outs) > 1 else factors


def first_ranks(fan_outs: Sequence[FanOut], tier: int) -> Sequence[int]:
    """The first rank of each unit of a tier and, last, the number of ranks; tier −1 is that of single ranks."""
    units = counts(fan_outs)
    if all(isinstance(each, int) for each in fan_outs[: tier + 1]):
        step = math.prod(each for each in fan_outs[: tier + 1] if isinstance(each, int))
        return range(0, units[0] + 1, step)
    found: Sequence[int] = range(units[0] + 1)
    for fan_out, count in zip(fan_outs[: tier + 1], units[1:], strict=False):
        sizes = itertools.repeat(fan_out, count) if isinstance(fan_out, int) else fan_out
        found = [found[end] for end in itertools.accumulate(sizes, initial=0)]
    return found
