"""The sum of independent copies of one delay: what a rank takes for several steps in a row.

In closed form where the law has one: constants, exponentials and gammas (whose sums are gamma), with fixed parts and factors.
Of other smooth laws the quantile function of the sum is tabulated in 64 bits, by doubling (`quantiles.py`); its tails go on
beyond the table as they end there, in log-odds. A sum of n that are one of two laws, a pause or none, is a mixture by
how many are the second one, which is binomial. `direct` draws every copy.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError
from mc.delays.constant import Constant
from mc.delays.exponential import Exponential
from mc.delays.gamma import Gamma
from mc.delays.mixture import Mixture
from mc.delays.numerics import LOG_ODDS_SPAN, log_odds, log_survival_of_odds
from mc.delays.quantiles import Quantiles, odds_of, quantiles_of, sum_of, total_of
from mc.delays.sum import Sum

# A delay, and how many independent copies of it there are.
Copies = tuple[AbstractDelay, int]
# Tables of so many copies, by the identity of the delay.
_Tables = dict[tuple[int, int], Quantiles]

# More of the second law than this are a law of their own only with less than this probability, and not in more components.
_NEVER, _MOST_COMPONENTS = 1e-12, 16


class Total(AbstractDelay):
    """A sum of copies of delays, by a table. Make one with `total`.

    Attributes:
        delays: that are added up.
        counts: how many copies of each.
        odds: log-odds of the knots, ascending.
        times: quantiles there, seconds.
    """

    delays: tuple[AbstractDelay, ...]
    counts: tuple[int, ...] = eqx.field(static=True)
    odds: Float[Array, " knots"]
    times: Float[Array, " knots"]

    def log_survival(self, t):
        """The interpolated log-odds; 0 before the first knot, −∞ after the last."""
        t = jnp.asarray(t, self.times.dtype)
        inside = log_survival_of_odds(jnp.interp(t, self.times, self.odds))
        return jnp.where(t < self.times[0], 0.0, jnp.where(t > self.times[-1], -jnp.inf, inside))

    def quantile(self, log_survival):
        """Linear in log-odds between the knots; levels beyond e^±60 are clipped to there."""
        return jnp.interp(log_odds(jnp.asarray(log_survival, self.odds.dtype)), self.odds, self.times)


def total(delay: AbstractDelay, count: int) -> AbstractDelay:
    """The sum of `count` independent copies of `delay`, whose numbers must be known where it has no closed form.

    Raises:
        ParameterError: fewer than one.
    """
    if count < 1:
        raise ParameterError(f"count: expected one delay or more; got {count}")
    if count == 1:
        return delay
    match delay:
        case Constant():
            return Constant(count * delay.value)
        case Exponential():
            return Gamma(float(count), delay.mean_time)
        case Gamma():
            return Gamma(count * delay.shape, delay.scale)
        case Shifted():
            return Shifted(total(delay.delay, count), count * delay.shift)
        case Scaled():
            return Scaled(total(delay.delay, count), delay.factor)
        case Sum():
            return _tabulated((delay.first, count), (delay.second, count))
        case Mixture() if len(delay.components) == 2:
            return _of_two(delay, count)
        case _:
            return _tabulated((delay, count))


def _of_two(delay: Mixture, count: int) -> AbstractDelay:
    """By how many of the copies have the second law."""
    first, second = delay.components
    often = float(delay.weights[1])
    most = min(int(stats.binom.isf(_NEVER, count, often)), count)
    if most >= _MOST_COMPONENTS:
        return _tabulated((delay, count))
    weights = stats.binom.pmf(np.arange(most + 1), count, often)
    later = _beside(second, first)
    known: _Tables = {}
    parts = [
        _tabulated((first, count - some), (second, some), known=known)
        if later is None
        else _tabulated((first, count), (later, some), known=known)
        for some in range(most + 1)
    ]
    return Mixture(jnp.asarray(weights / weights.sum(), jnp.result_type(float)), tuple(parts))


def _beside(delay: AbstractDelay, other: AbstractDelay) -> AbstractDelay | None:
    """What is added to `other` to make `delay`; None where that is not how it is made."""
    if not isinstance(delay, Sum):
        return None
    if delay.first is other:
        return delay.second
    return delay.first if delay.second is other else None


def _tabulated(*copies: Copies, known: _Tables | None = None) -> AbstractDelay:
    known = {} if known is None else known
    copies = tuple((delay, count) for delay, count in copies if count)
    times = None
    for delay, count in copies:
        for some in (1, count):
            if (id(delay), some) not in known:
                known[id(delay), some] = (
                    quantiles_of(delay) if some == 1 else total_of(known[id(delay), 1], some)
                )
        law = known[id(delay), count]
        times = law if times is None else sum_of(times, law)
    assert times is not None
    if np.ptp(times) == 0:
        return Constant(times[0])
    odds = odds_of(times.size)
    # As the last cells go on, to the ends of all tables.
    early = times[0] - (times[1] - times[0]) / (odds[1] - odds[0]) * (LOG_ODDS_SPAN + odds[0])
    late = times[-1] + (times[-1] - times[-2]) / (odds[-1] - odds[-2]) * (LOG_ODDS_SPAN - odds[-1])
    real = jnp.result_type(float)
    return Total(
        tuple(delay for delay, _ in copies),
        tuple(count for _, count in copies),
        jnp.asarray(np.concatenate([[-LOG_ODDS_SPAN], odds, [LOG_ODDS_SPAN]]), real),
        jnp.asarray(np.concatenate([[max(early, 0.0)], times, [late]]), real),
    )
