"""Exponential jitter: what is left when many rare, unrelated things may hold a rank up."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import scalar


class Exponential(AbstractDelay):
    """log S(t) = −t/θ with mean θ. The slowest of n has mean θ·H_n.

    With a fixed part, `Shifted(Exponential(θ), α)` is the shifted exponential.
    """

    mean_time: Float[Array, ""] = eqx.field(converter=scalar("mean", minimum=0.0, open_minimum=True))

    def log_survival(self, t):
        """−t/θ."""
        return -jnp.maximum(t, 0.0) / self.mean_time

    def quantile(self, log_survival):
        """−θ·log S."""
        return -self.mean_time * log_survival
