"""Counts at given levels: binomial and multinomial draws by inverse transform.

A rejection sampler would be faster, and would lose what the levels are for: under one seed, a count is a monotone
function of the number of trials. As Q(n + 1, u) is Q(n, u) or one more, both the successes and the failures of more
trials are at least those of fewer. So a larger cluster holds the smaller one, state by state and step by step.

Everything here is float64 on the host; the incomplete beta function behind `scipy.special` is good to 10⁹ trials.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special


def binomial_counts(levels: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> NDArray[np.float64]:
    """How many of `trials` succeed: binomial quantiles.

    Args:
        levels: log-survivals (`draw_levels`).
        trials: whole numbers, 0 or more; broadcast with the levels.
        probability: of a success, in [0, 1]; broadcast too.

    Returns:
        The smallest count whose distribution function reaches 1 − e^level.
    """
    # `scipy.stats` has it, but takes a second to import.
    reach, n, p = np.broadcast_arrays(
        -np.expm1(np.asarray(levels, np.float64)), np.asarray(trials, np.float64), probability
    )
    count = np.where(p >= 1, n, 0.0)
    open_cases = (n > 0) & (p > 0) & (p < 1)
    if open_cases.any():
        reach, n, p = reach[open_cases], n[open_cases], p[open_cases]
        found = np.clip(np.ceil(special.bdtrik(reach, n, p)), 0, n)
        below = np.maximum(found - 1, 0)
        count[open_cases] = np.where(special.bdtr(below, n.astype(np.int64), p) >= reach, below, found)
    return count


def multinomial_counts(
    levels: ArrayLike, trials: ArrayLike, probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How `trials` fall into kinds: one binomial after the other, each of what is left.

    Args:
        levels: log-survivals, shape (..., kinds − 1).
        trials: shape (...).
        probabilities: of the kinds, adding up to 1, in the order in which they are drawn: the likely ones first
            is quickest, since nothing is drawn once nothing is left. Shape (..., kinds) or (kinds,).

    Returns:
        Counts of shape (..., kinds) that add up to `trials`.
    """
    levels = np.asarray(levels, np.float64)
    left = np.array(np.broadcast_to(np.asarray(trials, np.float64), levels.shape[:-1]))
    kinds = probabilities.shape[-1]
    # What is left for this kind and the later ones, summed from the small end.
    remaining = np.cumsum(probabilities[..., ::-1], axis=-1)[..., ::-1]
    counts = np.empty((*left.shape, kinds))
    for kind in range(kinds - 1):
        whole = remaining[..., kind]
        share = np.where(whole > 0, probabilities[..., kind] / np.where(whole > 0, whole, 1.0), 1.0)
        counts[..., kind] = binomial_counts(levels[..., kind], left, np.minimum(share, 1.0))
        left -= counts[..., kind]
    counts[..., kinds - 1] = left
    return counts
