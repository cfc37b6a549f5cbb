"""Levels: uniform draws given as log-survival, with 64 bits in each tail.

A random time is drawn as `quantile(level)`, where the level is log U for a uniform U = P(T > t). A float32
uniform moves in steps of 2⁻²³ or 2⁻²⁴ and so stops an exponential at 15.94 or 16.6, which is wrong as soon as
10⁵ ranks wait for each other. Here U has 64 bits: its logarithm goes down to −45 in one tail, and in the
other tail log U = log1p(−V) with V the exact complement, so levels as near to zero as −10⁻¹⁹ are resolved to
full relative precision.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from mc.random.streams import key_words
from mc.random.threefry import threefry2x32

_TWO_TO_MINUS_32 = 2.0**-32


def levels_from_words(high: UInt32[Array, "*shape"], low: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log U for U = (high·2³² + low + ½)·2⁻⁶⁴; decreasing words give deeper (more negative) levels.

    Both halves of the unit interval are formed from their own end, so that neither loses its small numbers to
    rounding.
    """
    below_half = high < jnp.uint32(1 << 31)
    uniform = _fraction(high, low)
    complement = _fraction(~high, ~low)
    # Each logarithm sees a safe argument where the other one is meant, so that no lane is infinite.
    return jnp.where(
        below_half,
        jnp.log(jnp.where(below_half, uniform, 1.0)),
        jnp.log1p(-jnp.where(below_half, 0.0, complement)),
    )


def draw_levels(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Independent levels, one per element of `shape`; element i depends on the key and on i alone.

    Args:
        key: a threefry key.
        shape: fewer than 2³² elements.
    """
    count = math.prod(shape)
    if count >= 1 << 32:
        raise ValueError(
            f"expected fewer than 2**32 draws from one key; got {count}: use a key for each part"
        )
    index = jnp.arange(count, dtype=jnp.uint32)
    words = threefry2x32(key_words(key), jnp.zeros_like(index), index)
    return levels_from_words(*words).reshape(shape)


def _fraction(high: UInt32[Array, "*shape"], low: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    real = jnp.result_type(float)
    return (high.astype(real) + (low.astype(real) + 0.5) * _TWO_TO_MINUS_32) * _TWO_TO_MINUS_32
