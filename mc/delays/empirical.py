"""Measured times, with a fitted tail beyond the last of them.

Between the samples the law follows their order statistics; above the threshold that leaves `tail_fraction` of
them over, a generalised Pareto law is fitted to the excesses (maximum likelihood), because the slowest of 10⁵
ranks lies far beyond the slowest of a few thousand measurements, and repeating the largest sample there would
hide the tail that matters.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from mc.config.measured import unfit
from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError, scalar
from mc.delays.numerics import LOG_ODDS_SPAN, log_odds, log_survival_of_odds
from mc.delays.pareto import GeneralisedPareto

_MOST_KNOTS = 2048
# Ties are spread, and the law ended below its smallest sample, over this part of a value: about four float32
# steps.
_APART = 2.0**-21


class Empirical(AbstractDelay):
    """Order statistics up to a threshold, a generalised Pareto tail above it. Make one with `Empirical.fit`."""

    times: Float[Array, " knots"]
    odds: Float[Array, " knots"]
    tail: GeneralisedPareto
    tail_log_survival: Float[Array, ""] = eqx.field(converter=scalar("log tail fraction"))

    @staticmethod
    def fit(samples: ArrayLike, tail_fraction: float = 0.1) -> "Empirical":
        """From measured times (seconds, any order).

        Args:
            samples: positive, finite times; at least 20 of them must lie in the tail.
            tail_fraction: the share of samples to which the tail is fitted.

        Raises:
            ParameterError: too few samples, or samples that are not positive finite numbers.
        """
        ordered = np.sort(np.asarray(samples, np.float64).ravel())
        if not (0 < tail_fraction < 1):
            raise ParameterError(f"tail_fraction: expected a share between 0 and 1; got {tail_fraction}")
        found = unfit(ordered.tolist(), tail_fraction)
        if found is not None:
            raise ParameterError(": ".join(found))
        threshold = np.quantile(ordered, 1 - tail_fraction)
        excess = ordered[ordered > threshold] - threshold
        # Imported here because it takes a second, and only measured times need it.
        from scipy import stats

        shape, _, scale = stats.genpareto.fit(excess, floc=0)

        # Hazen's plotting positions, thinned evenly in log-odds; the body ends at the threshold.
        position = (np.arange(ordered.size) + 0.5) / ordered.size
        grid = np.linspace(_logit(position[0]), _logit(1 - tail_fraction), min(_MOST_KNOTS, ordered.size))
        times = np.interp(grid, _logit(position), ordered)
        times[-1] = threshold
        # A run of ties (a coarse clock makes many) is one steep step from its first to its last member.
        kept = (np.diff(times, prepend=-np.inf) > 0) | (np.diff(times, append=np.inf) > 0)
        times, grid = times[kept], grid[kept]
        steps = (1 + _APART) ** np.arange(times.size)
        times = np.maximum.accumulate(times / steps) * steps  # tᵢ ← max(tᵢ, tᵢ₋₁·(1 + apart))
        times = np.concatenate([[times[0] * (1 - _APART)], times])
        odds = np.concatenate([[-LOG_ODDS_SPAN], grid])
        return Empirical(
            jnp.asarray(times, jnp.result_type(float)),
            jnp.asarray(odds, jnp.result_type(float)),
            GeneralisedPareto(scale, shape),
            np.log(tail_fraction),
        )

    def log_survival(self, t):
        """The interpolated log-odds up to the threshold, the fitted tail above it."""
        threshold = self.times[-1]
        above = t > threshold
        tail = self.tail_log_survival + self.tail.log_survival(jnp.where(above, t - threshold, 0.0))
        body = log_survival_of_odds(jnp.interp(t, self.times, self.odds, left=-jnp.inf))
        return jnp.where(above, tail, body)

    def quantile(self, log_survival):
        """The inverse of both parts."""
        deep = log_survival < self.tail_log_survival
        beyond = jnp.where(deep, log_survival - self.tail_log_survival, 0.0)
        tail = self.times[-1] + self.tail.quantile(beyond)
        shallow = jnp.where(deep, self.tail_log_survival, log_survival)
        return jnp.where(deep, tail, jnp.interp(log_odds(shallow), self.odds, self.times))


def _logit(p):
    return np.log(p) - np.log1p(-p)
