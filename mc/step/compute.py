"""The compute phase: a step's synchronisation begins when the slowest rank is done.

Two kinds of slowness are kept apart, because measurements show both and no single law fits them. *Transient*:
each rank, in each step, draws its own time (`rank`). *Persistent*: a fraction of the chips is slow in every
step of a realisation of the cluster. How many are slow is binomial and drawn once per realisation; given that
number the slowest rank is the later of the slowest healthy and the slowest slow one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray
from scipy import special

from mc.delays import AbstractDelay, Scaled, Slowest, SlowestOf
from mc.delays.checks import scalar


class Compute(eqx.Module):
    """Compute times of `ranks` ranks.

    Attributes:
        rank: one healthy rank's compute time in one step, seconds.
        ranks: how many ranks there are.
        slow_fraction: probability that a chip is persistently slow; None if there are no such chips.
        slowdown: factor on all times of a slow chip, at least 1.
    """

    rank: AbstractDelay
    ranks: Float[Array, ""] = eqx.field(converter=scalar("ranks", minimum=1.0))
    slow_fraction: Float[Array, ""] | None = eqx.field(
        converter=scalar("slow fraction", minimum=0.0), default=None
    )
    slowdown: Float[Array, ""] = eqx.field(converter=scalar("slowdown", minimum=1.0), default=1.0)

    def mean_of_one(self) -> Float[Array, ""]:
        """Mean compute time of one rank that waits for nobody, over healthy and slow chips."""
        healthy = self.rank.mean()
        if self.slow_fraction is None:
            return healthy
        return healthy * (1 + self.slow_fraction * (self.slowdown - 1))

    def slowest(self, slow_chips: Float[Array, ""]) -> AbstractDelay:
        """The law of the slowest rank when `slow_chips` of them are slow."""
        if self.slow_fraction is None:
            return Slowest(self.rank, self.ranks)
        factors = jnp.stack([jnp.ones_like(self.slowdown), self.slowdown])
        counts = jnp.stack([self.ranks - slow_chips, slow_chips])
        return SlowestOf(
            jax.vmap(lambda factor, count: Slowest(Scaled(self.rank, factor), count))(factors, counts)
        )


def slow_chip_counts(levels: ArrayLike, ranks: int, slow_fraction: float) -> NDArray[np.float64]:
    """How many of `ranks` chips are slow in each realisation: binomial quantiles at random `levels` (log-survivals).

    By inverse transform, so that under one seed more ranks never mean fewer slow ones, nor fewer healthy
    ones.
    """
    # The smallest count whose distribution function reaches the level; `scipy.stats` has it, but takes a second to import.
    reach = -np.expm1(np.asarray(levels, np.float64))
    count = np.ceil(special.bdtrik(reach, ranks, slow_fraction))
    below = np.maximum(count - 1, 0)
    return np.where(special.bdtr(below, ranks, slow_fraction) >= reach, below, count)
