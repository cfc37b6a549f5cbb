"""Elasticities of a mean and of quantiles, from derivatives of sampled steps or from two samples.

With T a step's time and D = x ∂T/∂x its derivative under the same random numbers,

    x d E[T]/dx = E[D],      x dq/dx = E[D | T = q],

the second where T has a density at its quantile q and does not jump in x (L. J. Hong, "Estimating quantile sensitivities",
*Operations Research* 57(1), 2009, theorem 2). The condition is taken from the samples whose ranks are near that of the quantile, so
an elasticity is a ratio of means over the same steps, Σ D/Σ T, with the interval that such ratios have; realisations are its
independent units. Where steps jump (how many chips are slow is a whole number) both sides are drawn:

    e = ln(T(x(1 + h))/T(x(1 − h))) / ln((1 + h)/(1 − h))

of the number itself, with an interval by leaving out one group of realisations at a time (Efron, Tibshirani: *An Introduction to the
Bootstrap*, 1993, chapter 11).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mc.estimate import Estimate, ratio_estimate

Floats = NDArray[np.float64]
# The probability of each quantile; the mean has none.
NUMBERS: dict[str, float | None] = {"mean": None, "p50": 0.5, "p99": 0.99}
# Ranks within this part of the smaller tail count as those of the quantile.
_NEAR = 0.2
# Steps that stand for a quantile at least; with no more than these it has no interval.
_FEWEST = 8
_GROUPS = 10


@dataclass(frozen=True)
class Elasticity:
    """What 1 % more of a figure does to a step, in per cent.

    Attributes:
        path: of the figure.
        value: what it is, SI.
        mean: of the mean step.
        p50: of the median.
        p99: of the quantile.
        method: `gradient`, or `differences` where steps jump.
    """

    path: str
    value: float
    mean: Estimate
    p50: Estimate
    p99: Estimate
    method: str

    def of(self, number: str) -> Estimate:
        """That of a number, by its name."""
        return getattr(self, number)


def pathwise(times: Floats, derivatives: Floats, confidence: float) -> dict[str, Estimate]:
    """Elasticities from steps and their derivatives, [realisations, steps] each."""
    found = {}
    for name, probability in NUMBERS.items():
        near = np.ones(times.shape) if probability is None else nearby(times, probability)
        one = ratio_estimate(derivatives * near, times * near, confidence)
        if near.sum() <= _FEWEST:
            # So few steps say nothing of how far they are off.
            one = Estimate(one.value, -math.inf, math.inf)
        found[name] = one
    return found


def nearby(times: Floats, probability: float) -> Floats:
    """1 for steps whose ranks are near that of a quantile, else 0."""
    ranks = np.argsort(np.argsort(times, axis=None, kind="stable"), kind="stable").reshape(times.shape)
    middle = max(math.ceil(times.size * probability - 1e-9), 1) - 1
    reach = max(math.floor(_NEAR * min(probability, 1 - probability) * times.size), _FEWEST // 2)
    return (np.abs(ranks - middle) <= reach).astype(np.float64)


def between(less: Floats, more: Floats, step: float, confidence: float) -> dict[str, Estimate]:
    """Elasticities from steps with less of a figure and with more, [realisations, steps] each.

    Args:
        less: with 1 − step times as much.
        more: with 1 + step times as much.
        step: relative.
        confidence: of the intervals.
    """
    width = math.log1p(step) - math.log1p(-step)
    groups = np.array_split(np.arange(len(less)) if len(less) > 1 else np.arange(less.size), _GROUPS)
    if len(less) == 1:
        less, more = less.reshape(-1, 1), more.reshape(-1, 1)
    groups = [each for each in groups if each.size]
    found = {}
    for name, probability in NUMBERS.items():
        number = _number(probability)

        def of(kept: NDArray[np.int64], number: Callable[[Floats], float] = number) -> float:
            return math.log(number(more[kept]) / number(less[kept])) / width

        value = of(np.arange(len(less)))
        if len(groups) < 2:
            found[name] = Estimate(value, -math.inf, math.inf)
            continue
        left_out = np.array([of(np.setdiff1d(np.arange(len(less)), each)) for each in groups])
        count = len(groups)
        error = math.sqrt((count - 1) / count * float(((left_out - left_out.mean()) ** 2).sum()))
        reach = -float(special.stdtrit(count - 1, (1 - confidence) / 2)) * error
        found[name] = Estimate(value, value - reach, value + reach)
    return found


def _number(probability: float | None) -> Callable[[Floats], float]:
    if probability is None:
        return lambda times: float(times.mean())
    return lambda times: float(np.quantile(times, probability, method="inverted_cdf"))
