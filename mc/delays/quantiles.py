"""Sums, maxima and mixtures of independent times, as tables of quantiles in double precision.

A pass that waits n times takes the sum of n independent maxima, which has no closed form, and a law of `mc.delays` for
each n and each length of an operation would have to be compiled. Here a law is its quantile function Q at log-odds that
are even in ±34, and linear in log-odds between them. A sum is

    P(X + Y ≤ t) = F_X(t) ∫₀¹ F_Y(t − Q_X(u·F_X(t))) du,      P(X + Y > t) = S_X(t) + F_X(t) ∫₀¹ S_Y(t − Q_X(u·F_X(t))) du,

by the trapezoidal rule over the log-odds of u, which converges exponentially; all terms are positive, so both tails
keep their relative precision. n terms take some log₂ n doublings. Maxima multiply F, mixtures add F and S.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.delays.base import AbstractDelay
from mc.delays.numerics import log_survival_of_odds
from mc.delays.table import with_inverse

Quantiles = NDArray[np.float64]

# Of tables. Levels of 32 bits have ±23; what is beyond them adds to a sum nearer than its terms are.
REACH = 34.0
KNOTS = 4097
# Of the rule: from e^−40 to 1 − e^−40.
_NODES = np.linspace(-40.0, 40.0, 161)
_LESS = -np.logaddexp(0.0, -_NODES)  # log u
_WEIGHTS = np.exp(_LESS - np.logaddexp(0.0, _NODES)) * (_NODES[1] - _NODES[0])

# A step of a table that is so large a part of all that lies between these log-odds is a jump. Sums with jumps take so
# many cells, and so many times of each law that are paired.
_BODY, _JUMP, _CELLS, _FEW = 14.0, 0.1, 1024, 32


def odds_of(knots: int = KNOTS) -> NDArray[np.float64]:
    """The log-odds of a table."""
    return np.linspace(-REACH, REACH, knots)


def quantiles_of(law: AbstractDelay, knots: int = KNOTS) -> Quantiles:
    """The table of a law."""
    found = with_inverse(law).quantile(log_survival_of_odds(jnp.asarray(odds_of(knots))))
    return np.broadcast_to(np.asarray(found, np.float64), (knots,))


def sum_of(first: Quantiles, second: Quantiles) -> Quantiles:
    """The table of the sum of two independent times, from tables of one size."""
    for one, other in ((first, second), (second, first)):
        if np.ptp(one) == 0:
            return one[0] + other
    if _jumps(first):
        return _sum_with_jumps(first, second)
    if _jumps(second):
        return _sum_with_jumps(second, first)
    # From where both begin, the second one's distribution function bends at the end of the integral only.
    starts = first[0] + second[0]
    x, y = first - first[0], second - second[0]
    odds = odds_of(first.size)
    # As if both were late together: knots from the sum's one end to the other.
    t = x + y
    before = _log_cdf(np.interp(t, x, odds), t >= x[-1])
    inside = np.minimum(before[:, None] + _LESS, -1e-300)
    left = t[:, None] - np.interp(inside - np.log(-np.expm1(inside)), odds, x)
    late = np.interp(np.maximum(left, 0.0), y, odds)
    share = np.exp(before)
    below = share * (np.exp(-np.logaddexp(0.0, -late)) @ _WEIGHTS)
    above = -np.expm1(before) + share * (np.exp(-np.logaddexp(0.0, late)) @ _WEIGHTS)
    with np.errstate(divide="ignore"):
        found = np.maximum.accumulate(np.log(below) - np.log(above))
    usable = np.isfinite(found)
    return starts + np.interp(odds, found[usable], t[usable])


def total_of(one: Quantiles, times: int) -> Quantiles:
    """The table of the sum of so many independent times that are alike."""
    if times < 1:
        return np.zeros_like(one)
    found: Quantiles | None = None
    while True:
        if times & 1:
            found = one if found is None else sum_of(found, one)
        times >>= 1
        if not times:
            assert found is not None
            return found
        one = sum_of(one, one)


def _jumps(law: Quantiles) -> bool:
    """Whether the law has parts that lie apart, as pauses and mixtures of constants do."""
    inside = law[np.abs(odds_of(law.size)) <= _BODY]
    return bool(np.diff(inside).max() > _JUMP * np.ptp(inside)) if np.ptp(inside) else False


def _sum_with_jumps(first: Quantiles, second: Quantiles) -> Quantiles:
    """The same by cells of the first law, at times where parts of both meet; slower, and to a cell's probability."""
    size = first.size
    fine, coarse = max(size // _CELLS, 1), max(size // _FEW, 1)
    meeting = np.add.outer(first[::coarse], second[::coarse]).ravel()
    t = np.unique(np.concatenate([(first + second)[::fine], meeting]))
    # Shortly before and after each: what has a probability of its own is not lost to rounding.
    apart = 1e-9 * np.ptp(t)
    t = np.sort((t[:, None] + np.array([-apart, apart])).ravel())
    # Cells of several knots, but around jumps.
    steep = np.diff(first) > _JUMP / 10 * np.ptp(first[np.abs(odds_of(size)) <= _BODY])
    is_edge = np.arange(size) % fine == 0
    is_edge[:-1] |= steep
    is_edge[1:] |= steep
    place = np.flatnonzero(is_edge)
    edges = odds_of(size)[place]
    below, above = np.exp(-np.logaddexp(0.0, -edges)), np.exp(-np.logaddexp(0.0, edges))
    weights = np.where(edges[1:] <= 0, np.diff(below), -np.diff(above))
    middle = first[(place[1:] + place[:-1]) // 2]
    left_over = t[:, None] - middle
    late = (
        _odds_at(second, left_over)
        if _jumps(second)
        else np.interp(left_over, second, odds_of(size), left=-np.inf, right=np.inf)
    )
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(-np.logaddexp(0.0, -late)) @ weights)
        left = np.log(np.exp(-np.logaddexp(0.0, late)) @ weights)
    return _quantiles(t, found, left, size)


def largest_of(laws: Sequence[Quantiles], counts: Sequence[float]) -> Quantiles:
    """The table of the largest of so many independent times of each of some laws."""
    present = [(law, count) for law, count in zip(laws, counts, strict=True) if count > 0]
    t, sides = _knots([law for law, _ in present])
    below = np.sum([-count * np.logaddexp(0.0, -_odds_at(law, t, sides)) for law, count in present], axis=0)
    with np.errstate(divide="ignore"):
        return _quantiles(t, below, np.log(-np.expm1(below)), laws[0].size)


def at_times(law: Quantiles, other: Quantiles, probability: float) -> Quantiles:
    """The table of a time that has another law with a probability."""
    t, sides = _knots([law, other])
    mine, its = (_odds_at(each, t, sides) for each in (law, other))
    below, above = (
        np.logaddexp(
            np.log1p(-probability) - np.logaddexp(0.0, sign * mine),
            np.log(probability) - np.logaddexp(0.0, sign * its),
        )
        for sign in (-1.0, 1.0)
    )
    return _quantiles(t, below, above, law.size)


def _knots(laws: Sequence[Quantiles]) -> tuple[Quantiles, NDArray[np.bool_]]:
    """Times at which some law has a knot, each before and after what happens just then."""
    t = np.unique(np.concatenate(laws))
    return np.repeat(t, 2), np.tile([False, True], t.size)


def _odds_at(law: Quantiles, t: Quantiles, after: NDArray[np.bool_] | bool = True) -> Quantiles:  # noqa: FBT001, FBT002
    """Log-odds at times, infinite beyond the table: after what happens just then, or before."""
    times, first, count = np.unique(law, return_index=True, return_counts=True)
    odds = odds_of(law.size)
    low, high = odds[first], odds[first + count - 1]
    place = np.clip(np.searchsorted(times, t, side="right") - 1, 0, times.size - 1)
    ahead = np.minimum(place + 1, times.size - 1)
    width = times[ahead] - times[place]
    part = np.where(width > 0, (t - times[place]) / np.where(width > 0, width, 1.0), 0.0)
    found = high[place] + part * (low[ahead] - high[place])
    found = np.where(t == times[place], np.where(after, high[place], low[place]), found)
    over = np.where(after, t >= times[-1], t > times[-1])
    early = np.where(after, t < times[0], t <= times[0])
    return np.where(over, np.inf, np.where(early, -np.inf, found))


def _quantiles(t: Quantiles, below: Quantiles, above: Quantiles, knots: int) -> Quantiles:
    """The table of a law with log F and log S at ascending times."""
    odds = np.maximum.accumulate(np.clip(below - above, -2 * REACH, 2 * REACH))
    return np.interp(odds_of(knots), odds, t)


def _log_cdf(odds: NDArray[np.float64], over: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log F at log-odds; 0 where the time is beyond the table."""
    return np.where(over, 0.0, -np.logaddexp(0.0, -odds))
