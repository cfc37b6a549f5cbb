"""Cubic Hermite interpolation: what tables of quantile functions and of order statistics are read with."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def hermite(u, width, t0, t1, s0, s1):
    """The cubic on a cell with values t0 and t1 and slopes s0 and s1 at its ends, at the part u of its width."""
    # As a correction of the chord: t₀ + rise·u + u(1−u)·[(1−u)(s₀w − rise) − u(s₁w − rise)].
    rise = t1 - t0
    return t0 + (rise * u + u * (1 - u) * ((1 - u) * (s0 * width - rise) - u * (s1 * width - rise)))


def monotone(
    knots: Float[Array, " knots"], values: Float[Array, " knots"], slopes: Float[Array, " knots"]
) -> Float[Array, " knots"]:
    """Slopes limited to three times the smaller neighbouring chord: then the cubic is monotone (Fritsch, Carlson 1980)."""
    width = jnp.diff(knots)
    chord = jnp.where(width > 0, jnp.diff(values) / jnp.where(width > 0, width, 1.0), jnp.inf)
    limit = 3 * jnp.minimum(jnp.append(chord, jnp.inf), jnp.insert(chord, 0, jnp.inf))
    return jnp.minimum(slopes, jnp.where(jnp.isfinite(limit), limit, 0.0))
