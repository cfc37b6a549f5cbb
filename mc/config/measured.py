"""Whether measured times can be fitted: enough of them beyond a threshold, and all of them times."""

import math
from collections.abc import Sequence

# Excesses that a tail is fitted to.
_FEWEST = 20


def unfit(samples: Sequence[float], tail_fraction: float) -> tuple[str, str] | None:
    """What keeps samples from being fitted by a body and a tail; None if nothing does.

    Args:
        samples: in any order.
        tail_fraction: share of them that the tail is fitted to, more than 0 and less than 1.

    Returns:
        Which of the arguments, and what is wrong with it.
    """
    ordered = sorted(samples)
    if len(ordered) * tail_fraction < _FEWEST:
        least = math.ceil(_FEWEST / tail_fraction)
        found = f"expected at least {least:,} to fit a tail to {100 * tail_fraction:.3g} % of them; got {len(ordered):,}"
        return "samples", found
    if not all(math.isfinite(each) and each > 0 for each in ordered):
        return "samples", f"expected positive finite values; got {ordered[0]:g} to {ordered[-1]:g}"
    # The quantile, linear between order statistics.
    place = (len(ordered) - 1) * (1 - tail_fraction)
    below = int(place)
    above = ordered[min(below + 1, len(ordered) - 1)]
    threshold = ordered[below] + (place - below) * (above - ordered[below])
    beyond = sum(each > threshold for each in ordered)
    if beyond < _FEWEST:
        text = f"expected {_FEWEST} values above the quantile {1 - tail_fraction:.3g}; got {beyond} above {threshold:g}"
        return "samples", f"{text}: too many are equal, choose another tail_fraction"
    return None
