"""The slowest of many ranks from the slowest of few, as it was measured: no family of laws.

The slowest of n has F^n, so its quantile at a level is that of the slowest of m at level^(m/n). An interval is that of a
bootstrap of parts of a run: noise comes in episodes, and calls of one are not independent.
"""

import numpy as np
from numpy.typing import NDArray

_DRAWS, _SEED = 1000, 7


def quantile_of_more(times: NDArray[np.float64], few: int, many: int, level: float) -> float:
    """The quantile of the slowest of `many` ranks, from times of the slowest of `few`."""
    return float(np.quantile(times, level ** (few / many)))


def interval_of_more(
    parts: NDArray[np.float64], few: int, many: int, level: float, *, width: float = 0.9
) -> tuple[float, float]:
    """Ends of the interval of that quantile.

    Args:
        parts: times of the slowest of `few`, [parts, times], in their order.
        few: ranks.
        many: ranks.
        level: of the quantile.
        width: of the interval.
    """
    chosen = np.random.default_rng(_SEED).integers(len(parts), size=(_DRAWS, len(parts)))
    found = [quantile_of_more(parts[each].ravel(), few, many, level) for each in chosen]
    low, high = np.quantile(found, (0.5 - width / 2, 0.5 + width / 2))
    return float(low), float(high)
