"""Quantiles with intervals made of order statistics: no law is assumed, and no bound is invented.

The number of independent samples at or below the true p-quantile is binomial(n, p), whatever the law. Reading
that binomial's bounds as ranks gives the interval. With n = 200 the rank that bounds p99.9 from above would
be the 201st: there is none, and the bound is infinite.

Samples that come in clusters (the steps of one realisation) count for less. Woodruff (1952) measures by how
much at the estimated quantile: the spread of the clusters' proportions against the binomial's, the design
effect; Korn and Graubard (1998) divide n by it and pay for having estimated it from few clusters with a
Student factor. Two departures, both towards wider intervals:

- the Student factor's degrees of freedom come from the spread *and kurtosis* of the clusters' proportions
  (the variance of a sample variance), because three slow realisations out of fifty do not carry 49 degrees of
  freedom;
- the ranks are rounded outwards by a whole effective sample.

And one bound: the effective size is never below the number of clusters, since perfectly correlated clusters
are that many samples.

References:
    R. S. Woodruff, "Confidence intervals for medians and other position measures", JASA 47 (1952) 635-646.
    E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24 (1998) 193-201.
    H. A. David, H. N. Nagaraja, "Order Statistics", 3rd ed. (2003), section 7.1.
"""

import functools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from mc.estimate.samples import Estimate, as_realisations, check_confidence


def quantile_estimate(
    samples: ArrayLike,
    probability: float,
    confidence: float = 0.95,
    *,
    ordered: NDArray[np.float64] | None = None,
) -> tuple[Estimate, float]:
    """The `probability`-quantile of a step, its interval, and the effective sample size behind it.

    Args:
        samples: shape (realisations, steps).
        probability: which quantile, in (0, 1).
        confidence: coverage of the two-sided interval, in (0, 1).
        ordered: all samples, sorted, where the caller has them already.

    Returns:
        The estimate, an observed sample (the inverse of the empirical distribution function) between two
        others, and the number of independent samples that would be worth as much. A side that the samples
        cannot bound is infinite.
    """
    clusters = as_realisations(samples)
    level = check_confidence(confidence)
    if not 0.0 < probability < 1.0:
        raise ValueError(f"expected a quantile's probability between 0 and 1; got {probability!r}")
    ordered = np.sort(clusters, axis=None) if ordered is None else ordered
    count = ordered.size
    value = ordered[max(math.ceil(count * probability - 1e-9), 1) - 1]
    effective = _effective_size(clusters, float(value), level)
    lower, upper = interval_ranks(count, effective, probability, level)
    low = -math.inf if lower is None else float(min(ordered[lower - 1], value))
    high = math.inf if upper is None else float(max(ordered[upper - 1], value))
    return Estimate(float(value), low, high), effective


def _effective_size(clusters: NDArray[np.float64], value: float, confidence: float) -> float:
    """How many independent samples the clusters are worth for the proportion at or below `value`."""
    count, (groups, steps) = clusters.size, clusters.shape
    if steps == 1:
        return float(count)
    # A discrete law jumps at its quantile: the clusters may agree just above the jump and differ just below.
    sides = (np.mean(clusters <= value, axis=1), np.mean(clusters < value, axis=1))
    return float(max(min(effective_size(proportions, count, confidence) for proportions in sides), groups))


def effective_size(proportions: NDArray[np.float64], count: int, confidence: float) -> float:
    """What `count` samples in clusters are worth, by the proportions of the clusters at or below the quantile."""
    groups, p = proportions.size, proportions.mean()
    binomial = p * (1.0 - p) / count
    variance = proportions.var(ddof=1) / groups
    # Persistent state can only make steps alike; an estimate below the binomial variance is noise.
    if variance <= binomial:
        variance = binomial
    if variance == 0.0:
        return float(count)
    # Var(s²)/σ⁴ = κ/R + 2/(R−1) for independent clusters; a scaled χ² with this relative variance has these
    # degrees of freedom.
    freedom = 2.0 / (max(_excess_kurtosis(proportions), 0.0) / groups + 2.0 / (groups - 1))
    tail = (1.0 - confidence) / 2.0
    student = special.stdtrit(freedom, tail) / special.stdtrit(count - 1, tail)
    return float(p * (1.0 - p) / variance / student**2)


def _excess_kurtosis(values: NDArray[np.float64]) -> float:
    deviations = values - values.mean()
    square = np.mean(deviations**2)
    return float(np.mean(deviations**4) / square**2 - 3.0) if square > 0.0 else 0.0


def interval_ranks(
    count: int, effective: float, probability: float, confidence: float
) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that bound the quantile; None where no sample does.

    With B ~ binomial(m, p) samples at or below the quantile, the lower rank is the largest l with P(B ≥ l) ≥
    1 − α/2 and the upper rank the smallest u with P(B ≥ u) ≤ α/2. P(B ≥ k) = I_p(k, m−k+1) also makes sense
    for the fractional m of clusters, where one effective sample stands for count/m real ones.
    """
    tail = (1.0 - confidence) / 2.0
    weight = count / effective
    upper = _upper_rank(effective, probability, tail)
    # The lower bound is the upper bound of the mirrored sample.
    mirrored = _upper_rank(effective, 1.0 - probability, tail)
    lower_rank = None if mirrored is None else count + 1 - _outwards(mirrored * weight, count)
    upper_rank = None if upper is None else _outwards(upper * weight, count)
    return lower_rank, upper_rank


@functools.lru_cache(maxsize=256)
def _upper_rank(size: float, probability: float, tail: float) -> float | None:
    """The smallest real k ≤ `size` with P(binomial(`size`, `probability`) ≥ k) ≤ `tail`, if there is one."""

    def exceeds(k: float) -> float:
        return float(special.betainc(k, size - k + 1.0, probability)) - tail

    if exceeds(size) > 0.0:
        return None
    start = 1e-9
    if exceeds(start) <= 0.0:
        return start
    root = optimize.brentq(exceeds, start, size, xtol=1e-10)
    return float(root)  # pyright: ignore[reportArgumentType]


def _outwards(rank: float, count: int) -> int:
    return min(max(math.ceil(rank - 1e-6), 1), count)
