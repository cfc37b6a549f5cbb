"""One of a few fixed times: the states of a link, without jitter."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError, check_shares, scalar
from mc.delays.numerics import safe_log


class Discrete(AbstractDelay):
    """T = `values`[k] with probability `probabilities`[k]; values need not be ordered.

    The inverse is exact (no smear as in `Constant`), which is what the slowest of many groups needs; its
    derivative is that of the value drawn. Inside a `Mixture` or a `Sum` use `Constant` components instead,
    whose law has a slope.
    """

    values: Float[Array, " states"] = eqx.field(converter=scalar("value", minimum=0.0))
    probabilities: Float[Array, " states"] = eqx.field(converter=scalar("probability", minimum=0.0))

    def __check_init__(self):
        """One probability per value, adding up to 1."""
        if jnp.shape(self.values) != jnp.shape(self.probabilities) or not jnp.shape(self.values):
            raise ParameterError(
                "expected one probability per value; "
                f"got {jnp.shape(self.probabilities)} for {jnp.shape(self.values)}"
            )
        check_shares(self.probabilities)

    def log_survival(self, t):
        """Log of the probability of the values above t."""
        t = jnp.asarray(t)
        weights = self.probabilities / jnp.sum(self.probabilities)
        later = _beside(self.values, t) > t[..., None]
        weights = jnp.broadcast_to(weights, later.shape)
        above = jnp.sum(jnp.where(later, weights, 0.0), axis=-1)
        upto = jnp.sum(jnp.where(later, 0.0, weights), axis=-1)
        # Whichever sum is the smaller one is the precise one.
        low = upto < 0.5
        return jnp.where(low, jnp.log1p(-jnp.where(low, upto, 0.0)), safe_log(above))

    def quantile(self, log_survival):
        """The smallest value whose log-survival is at most the level."""
        order = jnp.argsort(self.values)
        values = self.values[order]
        level = jnp.asarray(log_survival)
        reached = _beside(self.log_survival(values), level) <= level[..., None]
        index = jnp.where(jnp.any(reached, axis=-1), jnp.argmax(reached, axis=-1), values.size - 1)
        return values[index]


def _beside(states: Float[Array, " states"], array: Float[Array, "*shape"]) -> Float[Array, "*shape states"]:
    # The states on an axis of their own behind those of `array`.
    return states.reshape((1,) * array.ndim + states.shape)
