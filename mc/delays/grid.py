"""The `grid` method: the distribution itself on a grid of times, with no sampling error at all.

Survival functions live on a fixed set of times, spaced evenly and, from the start of the law on, geometrically as
well: a heavy tail reaches so far that even spacing alone would leave out the body. Maxima, mixtures, factors and
shifts act point by point; a sum is a convolution by FFT, for which its terms are put on even times. That is a second,
independent route to every composed law, and the cheapest one to a quantile of a deep reduction tree.

Its resolution is the spacing. What is narrow and far from the start of the law, seen from its end, is blurred; so is
the body of a sum with a heavy tail; and below survival 10⁻⁶ a sum's tail drowns in the rounding of the FFT. The
`exact` method has none of these limits.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.mixture import Mixture
from mc.delays.numerics import LOG_ODDS_SPAN, log_complement, log_mixture, log_odds, safe_log
from mc.delays.order_statistic import OrderStatistic
from mc.delays.product import Product
from mc.delays.slowest import Latest, Slowest, SlowestOf
from mc.delays.sum import Sum
from mc.delays.table import Tabulated

_CELLS = 1 << 14
_TAIL_LEVEL = -16.0  # the grid ends where log S = −16: about 10⁻⁷
_DEEPEST = -1e30  # log F of the impossible, finite so that no count times it is undefined
_LEAST_STEP = 1e-18
_FINEST = 1e-10  # first geometric step, as a part of the whole span


class Gridded(AbstractDelay):
    """A law given by log S at ascending times, interpolated between them."""

    times: Float[Array, " points"]
    log_survivals: Float[Array, " points"]

    def log_survival(self, t):
        """Interpolated in log S."""
        return jnp.interp(t, self.times, self.log_survivals, left=0.0)

    def quantile(self, log_survival):
        """Interpolated in log-odds; levels beyond the grid are clipped to its ends."""
        # Finite, so that a cell with an end outside the support can be interpolated.
        odds = jnp.clip(log_odds(self.log_survivals), -LOG_ODDS_SPAN, LOG_ODDS_SPAN)
        return jnp.interp(log_odds(log_survival), odds, self.times)


def on_grid(delay: AbstractDelay, *, cells: int = _CELLS) -> Gridded:
    """The law of `delay` on twice `cells` times between its ends (survival 1 − 10⁻⁷ and 10⁻⁷)."""
    start, stop = _ends(delay, jnp.array([-1e-7, _TAIL_LEVEL]))
    even = jnp.linspace(0.0, 1.0, cells)
    geometric = jnp.geomspace(_FINEST, 1.0, cells)
    times = start + (stop - start) * jnp.sort(jnp.concatenate([even, geometric]))
    return Gridded(times, _evaluate(delay, times, cells))


def _ends(delay: AbstractDelay, levels: Float[Array, "2"]) -> Float[Array, "2"]:
    # Outer bounds of the quantiles at `levels`, taken from the leaves: P(X + Y > a + b) ≤ P(X > a) + P(Y >
    # b), and the slowest of n reaches as far as one copy does at a deeper level.
    match delay:
        case Tabulated():
            return _ends(delay.delay, levels)
        case Sum():
            return _ends(delay.first, levels) + _ends(delay.second, levels)
        case Product():
            return _ends(delay.first, levels) * _ends(delay.second, levels)
        case Shifted():
            return _ends(delay.delay, levels) + delay.shift
        case Scaled():
            return _ends(delay.delay, levels) * delay.factor
        case Slowest():
            return _ends(delay.delay, log_complement(log_complement(levels) / jnp.maximum(delay.ranks, 1.0)))
        case OrderStatistic():
            return _ends(delay.delay, delay.levels.of_one(levels))
        case SlowestOf():
            ends = jax.vmap(lambda law: _ends(law, log_complement(log_complement(levels) / delay.size)))(
                delay.delays
            )
            return jnp.stack([jnp.min(ends[:, 0]), jnp.max(ends[:, 1])])
        case Latest():
            # Later than each of them; and where all are in with probability 1 − p, each is with 1 − p/n.
            deeper = log_complement(log_complement(levels) / len(delay.delays))
            begin = jnp.stack([_ends(part, levels)[0] for part in delay.delays])
            end = jnp.stack([_ends(part, deeper)[1] for part in delay.delays])
            return jnp.stack([jnp.max(begin), jnp.max(end)])
        case Mixture():
            ends = jnp.stack([_ends(part, levels) for part in delay.components])
            return jnp.stack([jnp.min(ends[:, 0]), jnp.max(ends[:, 1])])
        case _:
            return delay.quantile(levels)


def _evaluate(delay: AbstractDelay, times: Float[Array, " points"], cells: int) -> Float[Array, " points"]:
    """Log S at ascending `times`. Factors and shifts change the times of what they wrap instead of resampling it."""
    match delay:
        case Tabulated():
            return _evaluate(delay.delay, times, cells)
        case Sum():
            return _convolve(delay, times, cells)
        case Product():
            return Product(
                on_grid(delay.first, cells=cells), on_grid(delay.second, cells=cells)
            ).log_survival(times)
        case Shifted():
            return _evaluate(delay.delay, times - delay.shift, cells)
        case Scaled():
            return _evaluate(delay.delay, times / delay.factor, cells)
        case Slowest():
            log_cdf = log_complement(_evaluate(delay.delay, times, cells))
            return log_complement(delay.ranks * jnp.maximum(log_cdf, _DEEPEST))
        case OrderStatistic():
            return delay.levels.of_all(_evaluate(delay.delay, times, cells))
        case SlowestOf():
            log_cdf = jax.vmap(lambda law: log_complement(_evaluate(law, times, cells)))(delay.delays)
            return log_complement(jnp.sum(jnp.maximum(log_cdf, _DEEPEST), axis=0))
        case Latest():
            log_cdf = jnp.zeros_like(times)
            for part in delay.delays:
                log_cdf = log_cdf + jnp.maximum(log_complement(_evaluate(part, times, cells)), _DEEPEST)
            return log_complement(log_cdf)
        case Mixture():
            return log_mixture(
                delay.weights, jnp.stack([_evaluate(part, times, cells) for part in delay.components])
            )
        case _:
            return delay.log_survival(times)


def _convolve(delay: Sum, times: Float[Array, " points"], cells: int) -> Float[Array, " points"]:
    levels = jnp.array([-1e-7, _TAIL_LEVEL])
    origins = [_ends(term, levels)[0] for term in (delay.first, delay.second)]
    origin = origins[0] + origins[1]
    # The lattice reaches as far as the sum is asked for.
    step = jnp.maximum((times[-1] - origin) / (cells - 1), _LEAST_STEP)
    masses = []
    for term, begin in zip((delay.first, delay.second), origins, strict=True):
        # Mass of the cell around each lattice point; what lies before the first counts there.
        survival = jnp.exp(_evaluate(term, begin + step * (jnp.arange(cells) + 0.5), cells))
        masses.append(-jnp.diff(survival, prepend=1.0))
    first, second = (jnp.fft.rfft(mass, 2 * cells) for mass in masses)
    mass = jnp.maximum(jnp.fft.irfft(first * second, 2 * cells), 0.0)
    # S half a step behind each lattice point of the sum, summed from the far end to keep the tail.
    beyond = jnp.flip(jnp.cumsum(jnp.flip(mass))) - mass
    index = (times - origin) / step - 0.5
    lattice = jnp.arange(beyond.size, dtype=index.dtype)
    return jnp.minimum(safe_log(jnp.interp(index, lattice, beyond, left=1.0, right=0.0)), 0.0)
