"""One independent factor on another: a time that all ranks of a unit see scaled together.

With the factor X (narrower, relative to its size) and the time Y,

    S(t) = ∫₀¹ S_Y(t / Q_X(u)) du,

and F likewise. All terms are positive, so both tails keep their relative precision. The integral is taken over the
log-odds of u, where the trapezoidal rule converges exponentially, as in `mc.delays.sum`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mc.delays.affine import Scaled
from mc.delays.base import AbstractDelay
from mc.delays.checks import is_known
from mc.delays.constant import Constant
from mc.delays.inverse import solve_quantile
from mc.delays.mixture import Mixture
from mc.delays.numerics import LOG_2, log_complement, log_survival_of_odds, safe_log

_NODES = 129
_NODE_SPAN = 64.0
_TINY = 1e-30


class Product(AbstractDelay):
    """`first` × `second`, independent. The integral runs over `first`: `multiply` makes that the narrower one."""

    first: AbstractDelay
    second: AbstractDelay

    def log_survival(self, t):
        """By the quadrature above."""
        t = jnp.asarray(t, jnp.result_type(float))
        odds, step = jnp.linspace(-_NODE_SPAN, _NODE_SPAN, _NODES, retstep=True)
        levels = log_survival_of_odds(odds)
        weights = jnp.exp(levels + log_complement(levels)) * step
        factors = jnp.maximum(self.first.quantile(levels), _TINY)

        def accumulate(sums, node):
            factor, weight = node
            log_s = self.second.log_survival(t / factor)
            return (sums[0] + weight * jnp.exp(log_s), sums[1] + weight * -jnp.expm1(log_s)), None

        zero = jnp.zeros_like(t)
        nodes = factors, weights / jnp.sum(weights)
        (survival, finished), _ = jax.lax.scan(accumulate, (zero, zero), nodes)
        log_finished = safe_log(finished)
        early = log_finished < -LOG_2
        return jnp.where(early, log_complement(jnp.where(early, log_finished, -1.0)), safe_log(survival))

    def quantile(self, log_survival):
        """By bisection; tabulate the law to draw from it often."""
        return solve_quantile(self, log_survival)


def multiply(factor: AbstractDelay, time: AbstractDelay) -> AbstractDelay:
    """The product of two independent delays, as simple as it can be said.

    A constant factor scales, a mixture is a mixture of products; otherwise the narrower one (by the ratio of its
    90 % to its 10 % quantile, where that is known) is integrated over.
    """
    for one, other in ((factor, time), (time, factor)):
        if isinstance(one, Constant):
            return Scaled(other, one.value)
    if isinstance(factor, Mixture):
        return Mixture(factor.probabilities, tuple(multiply(part, time) for part in factor.components))
    widths = _spreads((factor, time))
    swap = all(map(is_known, widths)) and bool(np.asarray(widths[0] > widths[1]))
    return Product(time, factor) if swap else Product(factor, time)


@eqx.filter_jit
def _spreads(laws: tuple[AbstractDelay, ...]) -> tuple[Float[Array, ""], ...]:
    return tuple(map(_spread, laws))


def _spread(delay: AbstractDelay):
    ends = delay.quantile(jnp.log(jnp.array([0.1, 0.9])))
    return jnp.log(jnp.maximum(ends[0], _TINY)) - jnp.log(jnp.maximum(ends[1], _TINY))
