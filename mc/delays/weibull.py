"""Weibull jitter: a stretched (shape < 1) or compressed (shape > 1) exponential tail."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar

_EARLIEST = 1e-30  # seconds: nothing is faster, and the slope of the logarithm still fits into 32 bits
_MOST_LOG_HAZARD = 80.0  # log S = −5·10³⁴: finite, and so are its gradients


class Weibull(AbstractDelay):
    """log S(t) = −(t/scale)^shape."""

    scale: Float[Array, ""] = eqx.field(converter=scalar("scale", minimum=0.0, open_minimum=True))
    shape: Float[Array, ""] = eqx.field(converter=scalar("shape", minimum=0.0, open_minimum=True))

    def log_survival(self, t):
        """−(t/scale)^shape."""
        positive = t > _EARLIEST
        log_hazard = self.shape * jnp.log(jnp.where(positive, t, self.scale) / self.scale)
        return jnp.where(positive, -jnp.exp(jnp.minimum(log_hazard, _MOST_LOG_HAZARD)), 0.0)

    def quantile(self, log_survival):
        """scale·(−log S)^{1/shape}."""
        return self.scale * _power(-log_survival, 1 / self.shape)


def _power(base: Float[Array, "*shape"], exponent: Float[Array, ""]) -> Float[Array, "*shape"]:
    # base^exponent for base ≥ 0, with gradients that are finite at base = 0.
    positive = base > 0
    return jnp.where(positive, jnp.exp(exponent * jnp.log(jnp.where(positive, base, 1.0))), 0.0)
