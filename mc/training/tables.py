"""Tables of quantiles that draws read: one number per draw, whatever the law.

Knots are even in log-odds between the levels that 32 bits can have, so no search is needed: a draw costs two logarithms,
and looking two numbers up, which takes most of the time.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32
from numpy.typing import NDArray

from mc.delays.quantiles import odds_of

# 32 bits have log-odds up to ±33·log 2.
REACH = 23.0
KNOTS = 8193


class QuantileTable(eqx.Module):
    """Quantiles of laws, by two things that tell them apart.

    Attributes:
        times: [rows, columns, knots], at log-odds that are even in ±23.
    """

    times: Float[Array, "rows columns knots"]

    def look_up(
        self,
        row: Int[Array, "stages #batch"],
        column: Int[Array, "stages batch"],
        word: UInt32[Array, "stages batch"],
    ) -> Float[Array, "stages batch"]:
        """The quantile of a law at a uniform word."""
        knots = self.times.shape[-1]
        place = (odds_of_word(word) + REACH) * ((knots - 1) / (2 * REACH))
        below = jnp.clip(place.astype(jnp.int32), 0, knots - 2)
        part = place - below
        flat = self.times.reshape(-1)
        first = (row * self.times.shape[1] + column) * knots + below
        low, high = flat[first], flat[first + 1]
        return low + (high - low) * part


def table_of(sums: NDArray[np.float64]) -> QuantileTable:
    """The table of laws that `mc.delays.quantiles` has, [rows, columns, its knots]."""
    found, odds = odds_of(sums.shape[-1]), np.linspace(-REACH, REACH, KNOTS)
    times = [[np.interp(odds, found, each) for each in row] for row in sums]
    return QuantileTable(jnp.asarray(np.array(times), jnp.result_type(float)))


def odds_of_word(word: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log-odds of a uniform word, from its nearer end; decreasing words give smaller ones."""
    real = jnp.result_type(float)
    tail = (jnp.minimum(word, ~word).astype(real) + 0.5) * 2.0**-32
    size = jnp.log1p(-tail) - jnp.log(tail)
    return jnp.where(word < jnp.uint32(1 << 31), -size, size)
