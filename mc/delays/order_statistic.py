r"""Waiting for all but the slowest k of n: the (n − k)-th order statistic of independent delays that are alike.

It is later than t where more than k ranks are, and the number of those is binomial. So with S one rank's survival

    S_(n−k:n) = P(Bin(n, S) > k) = I_S(k + 1, n − k),

the regularised incomplete beta function, and the quantile is one rank's quantile at the beta quantile of the level
(David and Nagaraja 2003, section 2.1): one draw, whatever n and k. With k = 0 this is the slowest of n.

The map from the level of the order statistic to that of one rank depends on n and k alone. It is kept as a table in
log-odds of both, whose knots and slopes are SciPy's inverse of I in 64 bits, each tail from its own side; between them it is
a cubic, and beyond them a straight line, which it becomes (I ~ C(n, k+1)·S^{k+1} as S → 0, and likewise in the other tail).
So both tails keep their relative precision in 32 bits, where the function itself, with n = 10⁶ say, loses all digits to the
cancellation of its three large logarithms.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy import special

from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError
from mc.delays.hermite import hermite
from mc.delays.numerics import log_odds, log_survival_of_odds
from mc.delays.slowest import Slowest

# Log-odds of the order statistic that the table spans; log-survivals of draws end at −45.
_REACH = 66.0
_KNOTS = 2113
_MOST = 2**31


class BetaLevels(eqx.Module):
    """From log-survivals of the order statistic to those of one rank, and back. Make one with `beta_levels`.

    Attributes:
        ranks: n.
        dropped: k, that nobody waits for.
        own: log-odds of one rank at the knots, less those at the middle one.
        middle: these.
        slopes: of `own` in the log-odds of the order statistic.
    """

    ranks: int = eqx.field(static=True)
    dropped: int = eqx.field(static=True)
    own: Float[Array, " knots"]
    middle: Float[Array, ""]
    slopes: Float[Array, " knots"]

    def of_one(self, log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log-survival of one rank where that of the order statistic is given."""
        y = log_odds(log_survival)
        inside = jnp.clip(y, -_REACH, _REACH)
        # Knots are even in y.
        step = 2 * _REACH / (_KNOTS - 1)
        place = jnp.clip(jnp.floor((inside + _REACH) / step).astype(jnp.int32), 0, _KNOTS - 2)
        u = (inside + _REACH) / step - place
        found = hermite(
            u, step, self.own[place], self.own[place + 1], self.slopes[place], self.slopes[place + 1]
        )
        return _ends(y, log_survival_of_odds(found + self._beyond(y - inside) + self.middle))

    def of_all(self, log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log-survival of the order statistic where that of one rank is given."""
        y = log_odds(log_survival)
        finite = jnp.isfinite(y)
        x = jnp.where(finite, y, 0.0) - self.middle
        inside = jnp.clip(x, self.own[0], self.own[-1])
        place = jnp.clip(jnp.searchsorted(self.own, inside, side="right", method="scan") - 1, 0, _KNOTS - 2)
        left, width = self.own[place], self.own[place + 1] - self.own[place]
        step = 2 * _REACH / (_KNOTS - 1)
        u = jnp.where(width > 0, (inside - left) / jnp.where(width > 0, width, 1.0), 0.0)
        start = -_REACH + step * place
        chord = step / jnp.where(width > 0, width, 1.0)
        first, second = (jnp.minimum(1 / self.slopes[place + side], 3 * chord) for side in (0, 1))
        found = hermite(u, width, start, start + step, first, second)
        outside = x - inside
        rate = jnp.where(outside < 0, self.slopes[0], self.slopes[-1])
        return _ends(y, log_survival_of_odds(found + outside / rate))

    def _beyond(self, outside: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        rate = jnp.where(outside < 0, self.slopes[0], self.slopes[-1])
        return rate * jnp.where(jnp.isfinite(outside), outside, 0.0)


class OrderStatistic(AbstractDelay):
    """When all but the slowest `levels.dropped` of `levels.ranks` copies of `delay` are there.

    The numbers are fixed: they choose the table. `wait_for_all_but` makes one, or a `Slowest` where none is dropped.
    """

    delay: AbstractDelay
    levels: BetaLevels

    def log_survival(self, t):
        """Log I_S(k + 1, n − k)."""
        return self.levels.of_all(self.delay.log_survival(t))

    def quantile(self, log_survival):
        """The quantile of one rank at the beta quantile of the level."""
        return self.delay.quantile(self.levels.of_one(log_survival))


def wait_for_all_but(dropped: int, ranks: int, delay: AbstractDelay) -> Slowest | OrderStatistic:
    """When all but the slowest `dropped` of `ranks` independent copies of `delay` are there.

    Raises:
        ParameterError: not 0 <= dropped < ranks.
    """
    if dropped == 0:
        return Slowest(delay, float(ranks))
    return OrderStatistic(delay, beta_levels(dropped, ranks))


def beta_levels(dropped: int, ranks: int) -> BetaLevels:
    """The table for the slowest `dropped` of `ranks`.

    Raises:
        ParameterError: not 0 <= dropped < ranks, or too many ranks.
    """
    if not 0 <= dropped < ranks <= _MOST:
        raise ParameterError(
            f"expected fewer dropped than there are ranks, and at most 2**31 of these; got {dropped} of {ranks}"
        )
    found = _table(dropped, ranks)
    middle = found.own[_KNOTS // 2]
    real = jnp.result_type(float)
    own, slopes = jnp.asarray(found.own - middle, real), jnp.asarray(found.slopes, real)
    return BetaLevels(ranks, dropped, own, jnp.asarray(middle, real), slopes)


class _Table(NamedTuple):
    own: NDArray[np.float64]
    slopes: NDArray[np.float64]


def _table(dropped: int, ranks: int) -> _Table:
    a, b = dropped + 1.0, float(ranks - dropped)
    y = np.linspace(-_REACH, _REACH, _KNOTS)
    late, early = special.expit(-y), special.expit(y)
    # log S and log F of one rank, each from the smaller of both, at the smaller of both levels.
    is_late = late < 0.5
    survival = np.where(is_late, special.betaincinv(a, b, late), special.betainccinv(a, b, early))
    finished = np.where(is_late, special.betainccinv(b, a, late), special.betaincinv(b, a, early))
    with np.errstate(divide="ignore"):
        low = survival < 0.5
        log_s = np.where(low, np.log(survival), np.log1p(-finished))
        log_f = np.where(low, np.log1p(-survival), np.log(finished))
    # dy = dS·pdf/(I·(1 − I)) and dx = dS/(S·F), with the density of the beta law S^{a−1}·F^{b−1}/B(a, b).
    log_density = a * log_s + b * log_f - special.betaln(a, b)
    slopes = np.exp(np.log(late) + np.log(early) - log_density)
    own = log_f - log_s
    # Between knots the chord tells as much as rounding lets the slopes be off.
    chord = np.diff(own) / np.diff(y)
    smaller = np.minimum(np.append(chord, np.inf), np.insert(chord, 0, np.inf))
    return _Table(own, np.minimum(slopes, 3 * smaller))


def _ends(y: Float[Array, "*shape"], found: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """What is certain stays so."""
    certain = jnp.where(y > 0, -jnp.inf, 0.0)
    return jnp.where(jnp.isfinite(y), found, jax.lax.stop_gradient(certain))
