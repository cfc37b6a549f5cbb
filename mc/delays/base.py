"""What a delay is.

A *delay* is a non-negative random time T in seconds, given by its log-survival function log S(t) = log P(T >
t) and the inverse of that function. Working in log-survival is what keeps 32-bit arithmetic exact at the 1 −
10⁻⁹ quantile; a cumulative probability of 1 − 10⁻⁹ is simply 1 in float32.

Everything else follows from the pair. A draw is the quantile at a random level (`mc.random.draw_levels`). The
slowest of n copies has log F_max = n·log F, so its quantile is the quantile of one copy at a shifted level:
that is why a barrier of 10⁶ ranks costs what one rank costs. A density is a derivative. Expectations are
integrals over levels.

A family implements the two abstract methods for scalar parameters and times of any shape; a batch of delays
is the same module with a leading axis on its parameters, used under `jax.vmap`.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.numerics import LOG_ODDS_SPAN, log_complement, log_survival_of_odds


class AbstractDelay(eqx.Module):
    """A non-negative random time in seconds (or a plain factor, where it scales a time)."""

    @abc.abstractmethod
    def log_survival(self, t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log P(T > t); 0 below the support, −∞ above it.

        Must keep full *relative* precision near 0, where it equals −P(T ≤ t).
        """

    @abc.abstractmethod
    def quantile(self, log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The time t with log P(T > t) = `log_survival`: the inverse survival function in log form."""

    def log_cdf(self, t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log P(T ≤ t)."""
        return log_complement(self.log_survival(t))

    def log_density(self, t: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log of the density at t (per second): log S + log(−d log S/dt)."""
        t = jnp.asarray(t, jnp.result_type(float))
        log_s, slope = jax.jvp(self.log_survival, (t,), (jnp.ones_like(t),))
        positive = slope < 0
        return jnp.where(positive, jnp.log(jnp.where(positive, -slope, 1.0)) + log_s, -jnp.inf)

    def mean(self) -> Float[Array, ""]:
        """E[T] by the trapezoidal rule over log-odds, which is spectrally accurate for smooth quantile functions.

        Relative error below 10⁻⁵ for such laws with a finite variance. Where the quantile function jumps (fixed
        values, well separated states) the error is up to 1 % of the jump; a law without a mean gives a large,
        meaningless number.
        """
        odds = jnp.linspace(-LOG_ODDS_SPAN, LOG_ODDS_SPAN, 2401)
        log_s = log_survival_of_odds(odds)
        weight = jnp.exp(log_s + log_complement(log_s))  # dF/dy = S·F
        return jnp.sum(self.quantile(log_s) * weight) / jnp.sum(weight)
