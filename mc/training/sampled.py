"""The law of simulated values, between bounds that are known.

What a micro-batch brings (how tokens choose experts, how documents fill sequences) has no closed form, but is cheap to
simulate once; draws then come from the simulated law. `mc.delays.Empirical` would fit a tail beyond the largest value; here
nothing lies beyond the bounds, and a bound may have a probability of its own, as sequences of a single document have. Between
the outermost values and the bounds quantiles go on in log-odds as they went, which is an exponential tail.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from mc.delays import AbstractDelay, Constant
from mc.delays.checks import ParameterError
from mc.delays.numerics import LOG_ODDS_SPAN, log_odds, log_survival_of_odds

_MOST_KNOTS = 2048
# Values that all lie closer, some steps of float32, are one value.
_APART = 2.0**-20
# Log-odds over which the way on is read off: a twentieth of a tail.
_LAST = 3.0


class Sampled(AbstractDelay):
    """Order statistics, linear in log-odds between them. Make one with `law_of_samples`."""

    times: Float[Array, " knots"]
    odds: Float[Array, " knots"]

    def log_survival(self, t):
        """The interpolated log-odds; 0 before the first knot, −∞ from the last."""
        t = jnp.asarray(t, self.times.dtype)
        inside = log_survival_of_odds(jnp.interp(t, self.times, self.odds))
        return jnp.where(t < self.times[0], 0.0, jnp.where(t >= self.times[-1], -jnp.inf, inside))

    def quantile(self, log_survival):
        """The inverse; levels beyond e^±60 are the bounds."""
        return jnp.interp(log_odds(jnp.asarray(log_survival, self.odds.dtype)), self.odds, self.times)


def law_of_samples(samples: ArrayLike, lowest: float, highest: float) -> AbstractDelay:
    """The law of simulated values; a constant if all are the same.

    Args:
        samples: any order, any shape.
        lowest: no value is below.
        highest: no value is above.

    Raises:
        ParameterError: values beyond the bounds, or none.
    """
    ordered = np.sort(np.asarray(samples, np.float64).ravel())
    if not ordered.size or not (lowest <= ordered[0] and ordered[-1] <= highest):
        got = f"{ordered[0]} to {ordered[-1]}" if ordered.size else "none"
        raise ParameterError(f"samples: expected values from {lowest:g} to {highest:g}; got {got}")
    if ordered[-1] <= ordered[0] * (1 + _APART):
        return Constant(ordered.mean())
    # Hazen's plotting positions, thinned evenly in log-odds, so that both ends keep their order statistics.
    position = (np.arange(ordered.size) + 0.5) / ordered.size
    odds = np.log(position) - np.log1p(-position)
    grid = np.linspace(odds[0], odds[-1], min(_MOST_KNOTS, ordered.size))
    times = np.interp(grid, odds, ordered)
    low, high = (
        _beyond(grid[::way], times[::way], bound) for way, bound in ((-1, max(lowest, 0.0)), (1, highest))
    )
    grid, times = (np.concatenate([low[at][::-1], each, high[at]]) for at, each in enumerate((grid, times)))
    # Of a run of ties, its two ends: a jump of the distribution function.
    kept = (np.diff(times, prepend=-np.inf) > 0) | (np.diff(times, append=np.inf) > 0)
    real = jnp.result_type(float)
    return Sampled(jnp.asarray(times[kept], real), jnp.asarray(grid[kept], real))


def _beyond(
    odds: NDArray[np.float64], times: NDArray[np.float64], bound: float
) -> tuple[list[float], list[float]]:
    """Knots after the last one, to the end of tables: as it went over the last odds of 20, as far as the bound."""
    end = math.copysign(LOG_ODDS_SPAN, odds[-1] - odds[0])
    before = odds[-1] - math.copysign(min(_LAST, abs(odds[-1] - odds[0])), end)
    start = np.interp(before, odds, times) if end > 0 else np.interp(-before, -odds, times)
    slope = (times[-1] - start) / (odds[-1] - before)
    reached = odds[-1] + (bound - times[-1]) / slope if slope > 0 else math.copysign(math.inf, end)
    if abs(reached) >= LOG_ODDS_SPAN:
        return [end], [times[-1] + slope * (end - odds[-1])]
    return [reached, end], [bound, bound]
