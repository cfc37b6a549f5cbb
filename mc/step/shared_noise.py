"""Transient noise that ranks share: a node waits for its input, a rack throttles, a job writes a checkpoint.

In each step each unit draws a factor, a delay and whether it pauses; its slowest rank is later by that:

    X_unit = factor · (slowest of what it holds) + delay (+ pause)

A common factor and a common delay commute with the maximum, so the law of a unit follows from that of its slowest
rank, and the slowest of many units is again one draw: `mc.delays.shared_fate` with a continuum of states.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mc.delays import AbstractDelay, Method, add, multiply, sampler, with_inverse, with_pauses
from mc.delays.checks import scalar
from mc.random import draw_levels, stream


class SharedNoise(eqx.Module):
    """What all ranks of a unit of `unit` ranks see together in a step.

    Attributes:
        unit: ranks per unit.
        spread: factor on what the unit's ranks take; None for none.
        jitter: seconds added; None for none.
        pause_probability: that the unit pauses; None for no pauses.
        pause: seconds of a pause.
    """

    unit: int = eqx.field(static=True)
    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None
    pause_probability: Float[Array, ""] | None = eqx.field(
        converter=lambda value: None if value is None else scalar("pause probability", minimum=0.0)(value),
        default=None,
    )
    pause: AbstractDelay | None = None

    def law(self, slowest: AbstractDelay) -> AbstractDelay:
        """The law of a unit, from that of its slowest rank."""
        law = slowest if self.spread is None else multiply(self.spread, slowest)
        if self.jitter is not None:
            law = add(law, self.jitter)
        if self.pause_probability is not None and self.pause is not None:
            law = with_pauses(law, self.pause_probability, add(law, self.pause))
        return law

    def mean(self, inner: Float[Array, ""]) -> Float[Array, ""]:
        """The mean of a rank whose mean is `inner` without this noise."""
        mean = inner if self.spread is None else self.spread.mean() * inner
        if self.jitter is not None:
            mean = mean + self.jitter.mean()
        if self.pause_probability is not None and self.pause is not None:
            mean = mean + self.pause_probability * self.pause.mean()
        return mean

    def prepared(self) -> "SharedNoise":
        """The same with the tables that draws read."""
        laws = (None if law is None else with_inverse(law) for law in (self.spread, self.jitter, self.pause))
        spread, jitter, pause = laws
        return SharedNoise(self.unit, spread, jitter, self.pause_probability, pause)

    def affine(
        self, count: int, key: PRNGKeyArray, method: Method = "exact"
    ) -> tuple[Float[Array, " count"], Float[Array, " count"]]:
        """The factor and the seconds that `count` units draw, as `apply` draws them."""
        nothing, unit = (self.apply(each, key, method) for each in (jnp.zeros(count), jnp.ones(count)))
        return unit - nothing, nothing

    def apply(
        self, slowest: Float[Array, " count"], key: PRNGKeyArray, method: Method = "exact"
    ) -> Float[Array, " count"]:
        """Draws of units, from draws of their slowest ranks."""
        count = slowest.shape[0]
        if self.spread is not None:
            slowest = slowest * sampler(self.spread, method)(stream(key, "spread"), count)
        if self.jitter is not None:
            slowest = slowest + sampler(self.jitter, method)(stream(key, "jitter"), count)
        if self.pause_probability is not None and self.pause is not None:
            level = draw_levels(stream(key, "whether"), (count,))
            positive = self.pause_probability > 0
            limit = jnp.where(positive, jnp.log(jnp.where(positive, self.pause_probability, 1.0)), -jnp.inf)
            pause = sampler(self.pause, method)(stream(key, "pause"), count)
            slowest = slowest + jnp.where(level <= limit, pause, 0.0)
        return slowest
