"""A time that is always the same."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar

# An atom is smeared evenly over ± this part of its value (about ten float32 steps): a step function has no
# inverse and no slope, and with the smear a mixture of constants (random link states) stays invertible and
# differentiable like any other law.
_SMEAR = 2.0**-20
_SMEAR_AT_ZERO = 1e-15


class Constant(AbstractDelay):
    """T = `value` (seconds, ≥ 0)."""

    value: Float[Array, ""] = eqx.field(converter=scalar("value", minimum=0.0))

    def log_survival(self, t):
        """A steep ramp from 0 to −∞ across `value`."""
        width = _SMEAR * self.value + _SMEAR_AT_ZERO
        position = (t - self.value) / width
        inside = jnp.abs(position) < 1
        below = jnp.where(inside, 0.5 * (1 + position), 0.0)
        return jnp.where(position >= 1, -jnp.inf, jnp.log1p(-below))

    def quantile(self, log_survival):
        """`value`, whatever the level."""
        return jnp.broadcast_to(self.value, jnp.shape(log_survival))
