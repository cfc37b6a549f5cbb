"""Generalised Pareto jitter: the law of excesses over a high threshold (Balkema, de Haan 1974; Pickands 1975)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar

# Below this |shape·log-argument| the series of log(1+x)/x and expm1(x)/x is used: the limit shape → 0 is the
# exponential.
_SMALL = 1e-4


class GeneralisedPareto(AbstractDelay):
    """log S(t) = −log(1 + ξ·t/scale)/ξ: exponential at shape ξ = 0, a power law for ξ > 0, bounded for ξ < 0.

    The mean is infinite for ξ ≥ 1, the variance for ξ ≥ ½.
    """

    scale: Float[Array, ""] = eqx.field(converter=scalar("scale", minimum=0.0, open_minimum=True))
    shape: Float[Array, ""] = eqx.field(converter=scalar("shape"))

    def log_survival(self, t):
        """−log(1 + ξ·t/scale)/ξ, −∞ beyond the end of a bounded law."""
        ratio = jnp.maximum(t, 0.0) / self.scale
        x = self.shape * ratio
        inside = x > -1
        small = jnp.abs(x) < _SMALL
        tiny = jnp.where(small, x, 0.0)
        series = jnp.where(small, ratio, 0.0) * (1 - tiny / 2 + tiny**2 / 3)
        logarithm = jnp.log1p(jnp.where(inside & ~small, x, 0.0)) / jnp.where(
            self.shape == 0, 1.0, self.shape
        )
        return jnp.where(inside, -jnp.where(small, series, logarithm), -jnp.inf)

    def quantile(self, log_survival):
        """scale·(S^{−ξ} − 1)/ξ."""
        hazard = -log_survival
        finite = jnp.isfinite(hazard)
        hazard = jnp.where(finite, hazard, 1.0)
        x = self.shape * hazard
        small = jnp.abs(x) < _SMALL
        safe = jnp.where(small, 1.0, x)
        tiny = jnp.where(small, x, 0.0)
        factor = jnp.where(small, 1 + tiny / 2 + tiny**2 / 6, jnp.expm1(safe) / safe)
        end = jnp.where(self.shape < 0, self.scale / jnp.where(self.shape < 0, -self.shape, 1.0), jnp.inf)
        return jnp.where(finite, self.scale * hazard * factor, end)
