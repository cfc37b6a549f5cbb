"""Whether a row agrees with itself: size, time, algbw and busbw were measured together.

algbw = size/time and busbw = algbw × factor (`mc.logs.bus_bandwidth`). What disagrees shows a corrupted
line, a unit that is not what its heading says, or a number of ranks that is not what the log says.
"""

import math
from collections.abc import Iterable

from mc.config.bus_bandwidth import OF_BUFFER, bus_factor
from mc.logs.printed import Printed, meets

_GIGA = 1e9


def bandwidth_conflict(size: float, time: Printed, algbw: Printed) -> str | None:
    """Why size/time cannot be algbw, or None.

    Args:
        size: bytes.
        time: seconds.
        algbw: bytes per second.
    """
    low = size / time.high if time.high > 0 else math.inf
    high = size / time.low if time.low > 0 else math.inf
    if meets(low, high, algbw):
        return None
    return f"size/time is {size / time.value / _GIGA:.4g} GB/s, algbw {algbw.value / _GIGA:.4g} GB/s"


def bus_conflict(collective: str, ranks: int, algbw: Printed, busbw: Printed) -> str | None:
    """Why busbw cannot be that of so many ranks, or None."""
    factor = bus_factor(collective, ranks)
    if meets(factor * algbw.low, factor * algbw.high, busbw):
        return None
    return (
        f"algbw x {factor:.4g} ({collective} of {ranks} ranks) is {factor * algbw.value / _GIGA:.4g} GB/s, "
        f"busbw {busbw.value / _GIGA:.4g} GB/s"
    )


def ranks_from_bandwidths(collective: str, pairs: Iterable[tuple[Printed, Printed]]) -> int | None:
    """The one number of ranks that agrees with every pair of algbw and busbw; None if there is not just one.

    busbw/algbw = r is 2(n−1)/n for all-reduce, so n = 2/(2−r), and (n−1)/n for the collectives of whole
    buffers, so n = 1/(1−r).
    """
    top = 2.0 if collective == "all-reduce" else 1.0
    if collective != "all-reduce" and collective not in OF_BUFFER:
        return None
    least, most = 1.0, math.inf
    for algbw, busbw in pairs:
        if algbw.low <= 0:
            continue
        low, high = busbw.low / algbw.high, busbw.high / algbw.low
        if low >= top:
            return None
        least = max(least, top / (top - low))
        most = min(most, top / (top - high) if high < top else math.inf)
    first = math.ceil(least)
    return first if math.isfinite(most) and first == math.floor(most) else None


def unit_remark(ratios: Iterable[float]) -> str | None:
    """What is likely the matter if size/time is a constant multiple of algbw in all rows.

    Args:
        ratios: (size/time)/algbw.
    """
    known = sorted(ratio for ratio in ratios if math.isfinite(ratio) and ratio > 0)
    if len(known) < 2 or known[-1] > 1.05 * known[0]:
        return None
    middle = known[len(known) // 2]
    for factor, text in (
        (1e3, "times look like ms where us are expected"),
        (1e6, "times look like s where us are expected"),
        (1e-3, "times look like ns where us are expected"),
        (1.073741824, "bandwidths look like GiB/s where GB/s are expected"),
        (0.125, "bandwidths look like Gb/s where GB/s are expected"),
    ):
        if abs(middle / factor - 1) < 0.03:
            return f"mixed units: {text}"
    return f"mixed units: size/time is {middle:.4g} x algbw in every row"
