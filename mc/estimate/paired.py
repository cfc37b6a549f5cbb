"""Differences between two sets of samples, with intervals.

Drawn with the same seed, step i of realisation r of one experiment met the same noise as that of the other (*common random
numbers*): the difference of the pair varies far less than either. Its mean is a mean like any other. The difference of two
quantiles is that of the two samples; its interval is of the bootstrap, which draws the independent units (realisations, or
steps where there is one) with replacement, the same ones for both (Efron, Tibshirani: An Introduction to the Bootstrap, 1993,
chapter 13). If both sets are the same, so is every resample, and the difference is 0 without a width.

Sets that do not pair are drawn apart, and their mean's interval is Welch's.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mc.estimate.mean import mean_estimate
from mc.estimate.samples import Estimate, as_realisations, check_confidence

_RESAMPLES = 400
_SEED = 20210

Floats = NDArray[np.float64]


def mean_difference(before: Floats, after: Floats, confidence: float = 0.95, *, paired: bool) -> Estimate:
    """The mean of `after` less that of `before`.

    Args:
        before: shape (realisations, steps).
        after: likewise; of the same shape if they are paired.
        confidence: coverage of the interval.
        paired: whether the same numbers were drawn for both.
    """
    if paired:
        return mean_estimate(after - before, confidence)[0]
    units = [as_realisations(each).mean(axis=1) for each in (before, after)]
    value = float(units[1].mean() - units[0].mean())
    if min(each.size for each in units) == 1:
        return Estimate(value, -math.inf, math.inf)
    errors = [float(each.var(ddof=1)) / each.size for each in units]
    total = sum(errors)
    if total == 0.0:
        return Estimate(value, value, value)
    freedom = total**2 / sum(error**2 / (each.size - 1) for error, each in zip(errors, units, strict=True))
    half = -float(special.stdtrit(freedom, (1.0 - check_confidence(confidence)) / 2.0)) * math.sqrt(total)
    return Estimate(value, value - half, value + half)


def quantile_difference(
    before: Floats, after: Floats, probability: float, confidence: float = 0.95, *, paired: bool
) -> Estimate:
    """The quantile of `after` less that of `before`; arguments as for `mean_difference`."""
    first, second = as_realisations(before), as_realisations(after)
    quantile = _quantile(probability)
    value = quantile(second) - quantile(first)
    if paired and np.array_equal(first, second):
        return Estimate(value, value, value)
    if min(first.shape[0], second.shape[0]) == 1:
        return Estimate(value, -math.inf, math.inf)
    random = np.random.default_rng(_SEED)
    found = np.empty(_RESAMPLES)
    for index in range(_RESAMPLES):
        drawn = random.integers(first.shape[0], size=first.shape[0])
        other = drawn if paired else random.integers(second.shape[0], size=second.shape[0])
        found[index] = quantile(second[other]) - quantile(first[drawn])
    tail = (1.0 - check_confidence(confidence)) / 2.0
    low, high = np.quantile(found, [tail, 1.0 - tail])
    return Estimate(value, float(min(low, value)), float(max(high, value)))


def _quantile(probability: float) -> Callable[[Floats], float]:
    """The inverse of the empirical distribution function, as in `quantile_estimate`."""

    def of(samples: Floats) -> float:
        place = max(math.ceil(samples.size * probability - 1e-9), 1) - 1
        return float(np.partition(samples, place, axis=None)[place])

    return of
