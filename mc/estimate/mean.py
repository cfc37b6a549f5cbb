"""Means and ratios of means, with intervals that hold for skewed laws.

The independent units are the realisations' own means when there are several realisations, and the steps
otherwise. Student's t on them is right for symmetric units and covers too little on the side of a long tail:
the sample mean and its standard error rise and fall together. Hall's transformation removes that correlation
to first order: a monotone cubic of the t statistic whose law is symmetric up to O(1/n). With no skewness it
is the Student interval itself.

References:
    P. Hall, "On the removal of skewness by transformation", J. R. Statist. Soc. B 54 (1992) 221-228.
    N. J. Johnson, "Modified t tests and confidence intervals for asymmetrical populations",
    JASA 73 (1978) 536-544.
    W. G. Cochran, "Sampling Techniques", 3rd ed. (1977), chapter 6 (the variance of a ratio).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from mc.estimate.samples import Estimate, as_realisations, check_confidence


def mean_estimate(samples: ArrayLike, confidence: float = 0.95) -> tuple[Estimate, float]:
    """The mean of a step, its interval, and the effective sample size behind it.

    Args:
        samples: shape (realisations, steps).
        confidence: coverage of the two-sided interval, in (0, 1).

    Returns:
        The estimate (an infinite interval for a single sample) and the number of independent steps with the
        same standard error.
    """
    clusters = as_realisations(samples)
    level = check_confidence(confidence)
    # Measured from one of the samples, a constant stays exactly itself and a small jitter on a long step
    # keeps its digits.
    pivot = clusters[0, 0]
    centred = clusters - pivot
    units = centred.mean(axis=1)
    low, high = _interval(units, level)
    estimate = Estimate(float(pivot + units.mean()), float(pivot + low), float(pivot + high))
    return estimate, _effective_size(centred, units)


def ratio_estimate(numerator: ArrayLike, denominator: ArrayLike, confidence: float = 0.95) -> Estimate:
    """The ratio of two means over the same steps, with its interval (linearised).

    Args:
        numerator: shape (realisations, steps).
        denominator: the same shape; its mean must not be zero.
        confidence: coverage of the two-sided interval, in (0, 1).
    """
    above, below = as_realisations(numerator), as_realisations(denominator)
    level = check_confidence(confidence)
    scale = below.mean()
    if scale == 0.0:
        raise ValueError("expected a denominator whose mean is not zero; got 0")
    ratio = above.mean() / scale
    low, high = _interval(((above - ratio * below) / scale).mean(axis=1), level)
    return Estimate(float(ratio), float(ratio + low), float(ratio + high))


def _interval(units: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """The interval of the mean of independent `units`."""
    spread = float(units.std(ddof=1)) if units.size > 1 else 0.0
    skewness = _skewness(units) if spread > 0.0 else 0.0
    return interval_of_mean(float(units.mean()), spread, skewness, units.size, confidence)


def interval_of_mean(
    centre: float, spread: float, skewness: float, count: int, confidence: float
) -> tuple[float, float]:
    """The interval of the mean of independent units by their moments: Hall's transformed t, solved for the mean.

    Args:
        centre: their mean.
        spread: their standard deviation.
        skewness: of one of them.
        count: how many; one has an infinite interval.
        confidence: coverage, in (0, 1).
    """
    if count == 1:
        return -math.inf, math.inf
    if spread == 0.0:
        return centre, centre
    error = spread / math.sqrt(count)
    quantile = -float(special.stdtrit(count - 1, (1.0 - confidence) / 2.0))
    bend = skewness / (3.0 * math.sqrt(count))
    # g(t) = t + b t² + b² t³/3 + b/2 with b = γ/(3√n); a larger t is a smaller mean.
    return float(centre - error * _unbend(quantile, bend)), float(centre - error * _unbend(-quantile, bend))


def _unbend(x: float, bend: float) -> float:
    """The inverse of Hall's cubic at `x`; its limit as the skewness vanishes is the identity."""
    if abs(bend) < 1e-6:
        return x
    return float((np.cbrt(1.0 + 3.0 * bend * (x - bend / 2.0)) - 1.0) / bend)


def _skewness(units: NDArray[np.float64]) -> float:
    deviations = units - units.mean()
    return float(np.mean(deviations**3) / np.mean(deviations**2) ** 1.5)


def _effective_size(centred: NDArray[np.float64], units: NDArray[np.float64]) -> float:
    count, steps = centred.size, centred.shape[1]
    variance_of_mean = units.var(ddof=1) / units.size if units.size > 1 else 0.0
    if steps == 1 or variance_of_mean == 0.0:
        return float(count)
    return float(min(max(centred.var() / variance_of_mean, units.size), count))
