"""One of several delays, at random: link states, rare pauses, slow chips."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError, check_shares, scalar
from mc.delays.inverse import solve_quantile
from mc.delays.numerics import LOG_2, log_complement, log_mixture


class Mixture(AbstractDelay):
    """S = Σ π_k S_k.

    `probabilities` has one entry per component and adds up to 1 (to 10⁻⁵, then normalised; inside gradients
    it is normalised too, so a derivative in one probability is taken along the simplex).
    """

    probabilities: Float[Array, " k"] = eqx.field(converter=scalar("probability", minimum=0.0))
    components: tuple[AbstractDelay, ...]

    def __check_init__(self):
        """As many probabilities as components, adding up to 1."""
        if not self.components or self.probabilities.shape[-1:] != (len(self.components),):
            raise ParameterError(
                f"expected one probability per component; got {self.probabilities.shape[-1:]} for {len(self.components)}"
            )
        check_shares(self.probabilities)

    @property
    def weights(self) -> Float[Array, " k"]:
        """The probabilities, normalised."""
        return self.probabilities / jnp.sum(self.probabilities)

    def log_survival(self, t):
        """Log Σ π_k S_k, or log(1 − Σ π_k F_k) where that is the smaller sum: no precision is lost in either tail."""
        parts = jnp.stack([component.log_survival(t) for component in self.components])
        survival = log_mixture(self.weights, parts)
        finished = log_mixture(self.weights, log_complement(parts))
        early = finished < -LOG_2
        return jnp.where(early, log_complement(jnp.where(early, finished, -1.0)), survival)

    def quantile(self, log_survival):
        """By bisection; tabulate the law to draw from it often."""
        return solve_quantile(self, log_survival)


def with_pauses(delay: AbstractDelay, probability: ArrayLike, paused: AbstractDelay) -> Mixture:
    """`delay`, or rarely `paused` instead (give the whole time of a paused kernel, for example a `Sum` with the pause)."""
    share = scalar("probability", minimum=0.0)(probability)
    return Mixture(jnp.stack([1 - share, share]), (delay, paused))
