"""One rank's law at many step times: read off a table where it is costly to evaluate, as the sum of two random times is.

What a table says and its derivatives agree, since its points move with the figures and are differentiated too: were they held
still, values would be right to a millionth and slopes off by hundreds, and no descent would find where the loss is flat.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mc.calibration.step_counts import NEVER, log
from mc.delays import AbstractDelay

# Points of the table, of each kind.
_POINTS = 96
# Of log(-log F) far in the tail.
_DEEPEST = 700.0


def law_at(rank: AbstractDelay, at: Array) -> tuple[Array, Array]:
    """Log F of one rank, and the logarithm of its slope, at any times."""
    safe = jnp.where(at > 0, at, 1.0)
    log_cdf, slope = jax.jvp(rank.log_cdf, (safe,), (jnp.ones_like(safe),))
    possible = (at > 0) & (log_cdf > NEVER)
    log_cdf = jnp.where(possible, jnp.where(possible, log_cdf, -1.0), NEVER)
    return log_cdf, jnp.where(possible, log(jnp.where(possible, slope, 0.0)), NEVER)


def table_of(
    rank: AbstractDelay, since: Array, at: Array, factors: Array
) -> Callable[[Array], tuple[Array, Array]]:
    """The same at the times `at`, from a table of both.

    Between points log(−log F) is a cubic with the right values and slopes at both ends: it is nearly straight in the tail, where
    the slowest of many are. Points lie where the data lie, and evenly from the first to the last.
    """
    levels = np.linspace(0, 1, _POINTS)
    placed = jnp.quantile(since, levels)
    even = at.min() + (at.max() - at.min()) * levels
    points = jnp.sort(jnp.concatenate([even, (placed[None] / factors[:, None]).ravel()]))
    # Never two at one place.
    points = jnp.maximum(points, 1e-9) * (1 + 1e-9 * jnp.arange(points.size))
    depth, steep = jax.jvp(lambda at: _depth(rank, at), (points,), (jnp.ones_like(points),))
    # Where a law has no time, or only such.
    lost = ~(jnp.isfinite(depth) & jnp.isfinite(steep))
    depth = jnp.where(lost, jnp.where(rank.log_cdf(points) < -1, jnp.log(-NEVER), -_DEEPEST), depth)
    depth = jnp.clip(depth, -_DEEPEST, jnp.log(-NEVER))
    steep = jnp.where(lost | (depth >= jnp.log(-NEVER)) | (depth <= -_DEEPEST), 0.0, steep)

    def read(at: Array) -> tuple[Array, Array]:
        place = jnp.clip(jnp.searchsorted(points, at) - 1, 0, points.size - 2)
        low, gap = points[place], points[place + 1] - points[place]
        share = jnp.clip((at - low) / gap, 0.0, 1.0)
        rise = depth[place + 1] - depth[place]
        first, last = gap * steep[place], gap * steep[place + 1]
        # Hermite's cubic, and its slope.
        third, second = first + last - 2 * rise, 3 * rise - 2 * first - last
        value = depth[place] + share * (first + share * (second + share * third))
        falls = -(first + share * (2 * second + share * 3 * third)) / gap
        return -jnp.exp(value), value + log(falls)

    return read


def _depth(rank: AbstractDelay, at: Array) -> Array:
    """log(-log F), from the survival where that is small: far in the tail, where log F is 0 as numbers go, it is log(1 - F)."""
    log_cdf, log_survival = rank.log_cdf(at), rank.log_survival(at)
    early = log_cdf < -0.5
    below = jnp.where(early, jnp.log(-jnp.where(early, log_cdf, -1.0)), 0.0)
    far = log_survival < -30.0
    near = jnp.where(early | far, -1.0, log_survival)
    return jnp.where(early, below, jnp.where(far, log_survival, jnp.log(-jnp.log1p(-jnp.exp(near)))))
