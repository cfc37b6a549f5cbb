"""The first rank of every unit, as arrays; how fan-outs describe units is in `mc.config.layout`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mc.config.layout import FanOut, counts


def starts(fan_outs: Sequence[FanOut]) -> tuple[NDArray[np.int64], ...]:
    """Per tier, the first rank of each unit and, last, the number of ranks."""
    units = counts(fan_outs)
    found: list[NDArray[np.int64]] = []
    below = np.arange(units[0] + 1)
    for fan_out, count in zip(fan_outs, units[1:], strict=True):
        ends = np.cumsum(np.broadcast_to(np.asarray(fan_out, np.int64), count))
        below = below[np.concatenate([[0], ends])]
        found.append(below)
    return tuple(found)
