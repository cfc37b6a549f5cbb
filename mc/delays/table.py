"""Tabulated inverses: the quantile function of a composed law, built once per parameter set and looked up per draw.

The table is a monotone cubic (Hermite) interpolant of t in the log-odds y = log F − log S, which resolves
both tails alike. Its knots lie where the quantile function bends: a mixture of a fast and a slow state jumps
from one to the other within a narrow range of levels, and knots equally spaced in y would miss the jump. So
the quantile function is first solved on an even grid, and the final knots divide the length of that curve
evenly, where a bend counts as length. Values and slopes at the knots are exact, and so are the derivatives of
a draw in the parameters, which are the implicit ones at the time drawn (`mc.delays.inverse`).

The interpolation error is measured by `table_error`; the tests hold it under 10⁻⁵ of the quantile, or of the
log-odds where the law is nearly flat.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.gamma import Gamma
from mc.delays.hermite import hermite, monotone
from mc.delays.inverse import attach_derivative, attach_parameters, bisect_bits
from mc.delays.mixture import Mixture
from mc.delays.numerics import LOG_ODDS_SPAN, log_odds, log_survival_of_odds
from mc.delays.order_statistic import OrderStatistic
from mc.delays.product import Product
from mc.delays.slowest import Latest, Slowest, SlowestOf
from mc.delays.sum import Sum

_COARSE = 1025
_KNOTS = 4097
# One relative jump of the quantile function by a factor e gets as many knots as this much log-odds.
_BEND = 30.0
_REFINEMENTS = 4
_TOLERANCE = 1e-6
_MOST_PER_CELL = 100.0
_TINY = 1e-30  # seconds: nothing is that fast

# Each value of these is an integral, an iterated series or a product over many ranks.
_DEAR = (Sum, Product, Gamma, SlowestOf)


class Tabulated(AbstractDelay):
    """`delay`, with its quantile function read from a table. Make one with `tabulate`."""

    delay: AbstractDelay
    odds: Float[Array, " knots"]
    times: Float[Array, " knots"]
    slopes: Float[Array, " knots"]

    def log_survival(self, t):
        """That of the tabulated delay itself, or the interpolated one where the former is dear (quadratures, series, products)."""
        if not isinstance(self.delay, _DEAR):
            return self.delay.log_survival(t)
        return attach_parameters(self._look_up_odds(jnp.asarray(t, self.times.dtype)), self.delay, t)

    def quantile(self, log_survival):
        """By interpolation; levels beyond e^±60 are clipped to there."""
        level = jnp.asarray(log_survival, self.times.dtype)
        return attach_derivative(jax.lax.stop_gradient(self._look_up(level)), self, level)

    def _look_up(self, level):
        y = jnp.clip(log_odds(level), -LOG_ODDS_SPAN, LOG_ODDS_SPAN)
        right = jnp.clip(jnp.searchsorted(self.odds, y, method="scan"), 1, self.odds.size - 1)
        left = right - 1
        width = self.odds[right] - self.odds[left]
        u = jnp.where(width > 0, (y - self.odds[left]) / jnp.where(width > 0, width, 1.0), 1.0)
        return hermite(u, width, self.times[left], self.times[right], self.slopes[left], self.slopes[right])

    def _look_up_odds(self, t):
        odds, times, slopes = jax.lax.stop_gradient((self.odds, self.times, self.slopes))
        right = jnp.clip(jnp.searchsorted(times, t, method="scan"), 1, times.size - 1)
        left = right - 1
        width = times[right] - times[left]
        u = jnp.clip((t - times[left]) / jnp.where(width > 0, width, 1.0), 0.0, 1.0)
        chord = (odds[right] - odds[left]) / jnp.where(width > 0, width, 1.0)
        start, end = (_rate(slopes[side], chord) for side in (left, right))
        # Behind the last knot the log-odds go on rising as they do before it: a sum of tables must reach as deep.
        rise = (odds[-1] - odds[-2]) / jnp.maximum(times[-1] - times[-2], _TINY)
        y = hermite(u, width, odds[left], odds[right], start, end) + rise * jnp.maximum(t - times[-1], 0.0)
        return jnp.where(t < times[0], 0.0, log_survival_of_odds(y))


def tabulate(delay: AbstractDelay) -> Tabulated:
    """Table of the quantile function of any delay. Pure JAX: under `jit` and `vmap` too (a table per parameter set)."""
    frozen = jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_array(leaf) else leaf, delay)
    return Tabulated(delay, *_table(frozen))


# Outside of compiled code, one program for all laws of one structure, whatever is built around them.
@eqx.filter_jit
def _table(
    frozen: AbstractDelay,
) -> tuple[Float[Array, " knots"], Float[Array, " knots"], Float[Array, " knots"]]:
    """Log-odds, times and slopes of a table."""
    even = jnp.linspace(-LOG_ODDS_SPAN, LOG_ODDS_SPAN, _COARSE)
    coarse = bisect_bits(frozen, log_survival_of_odds(even))
    coarse = jnp.where(jnp.isfinite(coarse), coarse, jnp.finfo(coarse.dtype).max)
    knots = _spread_by_length(even, coarse)

    # The law is evaluated in one place, at knots and at mid-cell in turn, since that is what takes time to compile.
    def half_a_step(count, state):
        at, table = state
        log_s, slope = jax.jvp(frozen.log_survival, (at,), (jnp.ones_like(at),))
        return jax.lax.cond(count % 2 == 0, _interpolated, _moved, table, at, log_s, slope)

    start = knots, (knots, knots, knots)
    _, table = jax.lax.fori_loop(0, 2 * _REFINEMENTS + 1, half_a_step, start)
    return table


def with_inverse(delay: AbstractDelay) -> AbstractDelay:
    """`delay` with tables put in where a quantile has no closed form, as few and as far out as possible."""
    return _with_inverse(delay, {})


def table_error(law: Tabulated) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Largest error of the table at the middle of every cell: relative in time, and absolute in log-odds."""
    middle = 0.5 * (law.odds[1:] + law.odds[:-1])
    level = log_survival_of_odds(middle)
    found = law.quantile(level)
    exact = bisect_bits(law.delay, level)
    in_time = jnp.abs(found - exact) / jnp.maximum(exact, _TINY)
    in_odds = jnp.abs(log_odds(law.delay.log_survival(found)) - middle)
    return jnp.max(jnp.minimum(in_time, in_odds)), jnp.max(in_time)


# Tables that are there already, by the identity of what they are of. A law may hold another one in several places (a
# unit that pauses is the same unit and a pause; states of a link wrap one law): it needs one table, which is what takes
# time to compile and to fill. The law is kept beside its table, so that its identity is not given to another.
_Known = dict[int, tuple[AbstractDelay, AbstractDelay]]


def _with_inverse(delay: AbstractDelay, known: _Known) -> AbstractDelay:
    match delay:
        case Shifted() | Scaled() | Slowest() | OrderStatistic():
            return eqx.tree_at(lambda law: law.delay, delay, _with_inverse(delay.delay, known))
        case Sum() | Product() | SlowestOf() | Gamma():
            return _with_inner_tables(delay, known)
        case Mixture() | Latest():
            return _once(delay, known, lambda: tabulate(_with_inner_tables(delay, known)))
        case _:
            return delay


def _with_inner_tables(delay: AbstractDelay, known: _Known) -> AbstractDelay:
    # A sum integrates over the quantiles of its terms, so those need an inverse of their own; and inside
    # another law what is dear to evaluate is read from a table of its own.
    match delay:
        case Sum() | Product():
            return _once(
                delay,
                known,
                lambda: tabulate(
                    type(delay)(_with_inverse(delay.first, known), _with_inverse(delay.second, known))
                ),
            )
        case SlowestOf() | Gamma():
            return _once(delay, known, lambda: tabulate(delay))
        case Shifted() | Scaled() | Slowest() | OrderStatistic():
            return eqx.tree_at(lambda law: law.delay, delay, _with_inner_tables(delay.delay, known))
        case Mixture():
            return eqx.tree_at(
                lambda law: law.components,
                delay,
                tuple(_with_inner_tables(part, known) for part in delay.components),
            )
        case Latest():
            return Latest(tuple(_with_inner_tables(part, known) for part in delay.delays))
        case _:
            return delay


def _once(delay: AbstractDelay, known: _Known, make: Callable[[], AbstractDelay]) -> AbstractDelay:
    if id(delay) not in known:
        known[id(delay)] = delay, make()
    return known[id(delay)][1]


def _spread_by_length(
    odds: Float[Array, " coarse"], times: Float[Array, " coarse"]
) -> Float[Array, " knots"]:
    """Times that divide the curve (odds, log times) evenly, a bend counting as length."""
    x = jnp.log(jnp.maximum(times, _TINY))
    rise = jnp.diff(x)
    before, after = jnp.concatenate([rise[:1], rise[:-1]]), jnp.concatenate([rise[1:], rise[-1:]])
    bend = jnp.abs(rise - jnp.minimum(before, after))
    length = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.cumsum(jnp.diff(odds) + _BEND * bend)])
    even = jnp.linspace(0.0, length[-1], _KNOTS)
    return jnp.interp(even, length, times).at[0].set(times[0]).at[-1].set(times[-1])


# Log-odds, times and slopes dt/dy of the knots.
_Table = tuple[Float[Array, " knots"], Float[Array, " knots"], Float[Array, " knots"]]


def _interpolated(
    table: _Table,
    times: Float[Array, " knots"],
    log_s: Float[Array, " knots"],
    slope: Float[Array, " knots"],
) -> tuple[Float[Array, " knots"], _Table]:
    """The table with knots at `times`, where the law and its slope are known; and mid-cell, to look there next."""
    del table
    # The ends stand for the levels they were solved at; in between rounding must not make the log-odds fall.
    odds = jax.lax.cummax(jnp.clip(log_odds(log_s), -LOG_ODDS_SPAN, LOG_ODDS_SPAN))
    odds = odds.at[0].set(-LOG_ODDS_SPAN).at[-1].set(LOG_ODDS_SPAN)
    rate = -slope / -jnp.expm1(jnp.where(log_s < 0, log_s, -1.0))  # dy/dt = −(d log S/dt)/F
    usable = (rate > 0) & jnp.isfinite(rate) & (log_s < 0)
    slopes = monotone(odds, times, jnp.where(usable, 1 / jnp.where(usable, rate, 1.0), 0.0))
    middle = hermite(0.5, jnp.diff(odds), times[:-1], times[1:], slopes[:-1], slopes[1:])
    return jnp.append(middle, times[-1]), (odds, times, slopes)


def _moved(
    table: _Table,
    middle: Float[Array, " knots"],
    log_s: Float[Array, " knots"],
    slope: Float[Array, " knots"],
) -> tuple[Float[Array, " knots"], _Table]:
    """As many knots, moved to where the table misses the law at mid-cell by more than the tolerance."""
    del slope
    odds, times, _ = table
    width = jnp.diff(odds)
    miss = jnp.abs(log_odds(log_s[:-1]) - 0.5 * (odds[1:] + odds[:-1]))
    # The same miss in relative time, by the chord; an error counts when it is large in both.
    in_time = miss * jnp.diff(times) / (jnp.where(width > 0, width, 1.0) * jnp.maximum(middle[:-1], _TINY))
    error = jnp.where(width > 0, jnp.minimum(miss, in_time), 0.0)
    length = jnp.cumsum(jnp.insert(1 + jnp.minimum(jnp.sqrt(error / _TOLERANCE), _MOST_PER_CELL), 0, 0.0))
    even = jnp.linspace(0.0, length[-1], times.size)
    return jnp.interp(even, length, times).at[0].set(times[0]).at[-1].set(times[-1]), table


def _rate(slope, chord):
    # dy/dt from dt/dy, limited as the cubic in the other direction is.
    return jnp.minimum(jnp.where(slope > 0, 1 / jnp.where(slope > 0, slope, 1.0), jnp.inf), 3 * chord)
