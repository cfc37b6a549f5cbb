"""A fixed cost in front of a delay, and a factor on it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar


class Shifted(AbstractDelay):
    """T + `shift`: a fixed cost, then jitter."""

    delay: AbstractDelay
    shift: Float[Array, ""] = eqx.field(converter=scalar("shift", minimum=0.0))

    def log_survival(self, t):
        """Log S of the jitter at what is left after the fixed cost."""
        left = t - self.shift
        return jnp.where(left > 0, self.delay.log_survival(jnp.maximum(left, 0.0)), 0.0)

    def quantile(self, log_survival):
        """The jitter's quantile behind the fixed cost."""
        return self.delay.quantile(log_survival) + self.shift


class Scaled(AbstractDelay):
    """T × `factor`: congestion, or a slower chip, multiplies."""

    delay: AbstractDelay
    factor: Float[Array, ""] = eqx.field(converter=scalar("factor", minimum=0.0, open_minimum=True))

    def log_survival(self, t):
        """Log S of the unscaled delay at t/factor."""
        return self.delay.log_survival(t / self.factor)

    def quantile(self, log_survival):
        """The unscaled quantile × factor."""
        return self.factor * self.delay.quantile(log_survival)
