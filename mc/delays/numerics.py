"""Probabilities as logarithms of both tails, and the coordinate that resolves both.

S = P(T > t) is kept as log S. The other tail follows from it without loss, log F = log(1 − e^{log S}), as
long as log S itself has full relative precision near zero. The log-odds y = log F − log S run from −∞ to ∞ as
t grows, and a float32 y tells apart S = 10⁻²⁰ and S = 1 − 10⁻²⁰ alike; tables and root-finders work in it.

Every function here has finite gradients everywhere: where a branch would be infinite it is given a harmless
argument first (the "double where").
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

LOG_2 = math.log(2.0)
# The tables span S from e⁻⁶⁰ to 1 − e⁻⁶⁰ (10⁻²⁶): the slowest of 10⁹ ranks at its own 10⁻¹² quantile lies at
# 10⁻²¹.
LOG_ODDS_SPAN = 60.0


def log_complement(log_p: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log(1 − p) from log p ≤ 0, to full relative precision at both ends (Mächler 2012, log1mexp)."""
    near_one = log_p > -LOG_2
    low = jnp.where(near_one, -1.0, log_p)
    high = jnp.where(near_one & (log_p < 0), log_p, -1.0)
    result = jnp.where(near_one, jnp.log(-jnp.expm1(high)), jnp.log1p(-jnp.exp(low)))
    return jnp.where(log_p < 0, result, -jnp.inf)


def log_odds(log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Y = log F − log S: the logit of the probability that it is over; increasing in time."""
    return log_complement(log_survival) - log_survival


def log_survival_of_odds(odds: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Inverse of `log_odds`: log S = −log(1 + e^y)."""
    return -jnp.logaddexp(odds, 0.0)


def safe_log(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Log x for x > 0, and −∞ with a zero gradient for x ≤ 0."""
    positive = x > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, x, 1.0)), -jnp.inf)


def log_mixture(weights: Float[Array, " k"], log_p: Float[Array, "k *shape"]) -> Float[Array, "*shape"]:
    """Log Σ w_k p_k over the leading axis, with zero weights and zero probabilities allowed."""
    top = jnp.max(log_p, axis=0)
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    shape = (-1,) + (1,) * (log_p.ndim - 1)
    return safe_log(jnp.sum(weights.reshape(shape) * jnp.exp(log_p - top[None]), axis=0)) + top
