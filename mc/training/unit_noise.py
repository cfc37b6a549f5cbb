"""What all ranks of a node, a rack or the job have in common in a step.

A factor that stays during the step; and seconds, of jitter and of a pause, that fall on one of its operations, which is
drawn with them. A group that lies in several units goes with the worst of them.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from mc.delays import AbstractDelay
from mc.pipeline import Rows
from mc.random import key_words, levels_from_words, threefry2x32


class UnitNoise(eqx.Module):
    """The noise of the units of a scope.

    Attributes:
        name: of its stream.
        units: which units each group lies in, [stages, replicas, most].
        count: of units.
        spread: factor on operations; None for 1.
        jitter: seconds, once in a step; None for none.
        pause: likewise, with a probability.
        pause_probability: of a pause in a step.
    """

    name: str = eqx.field(static=True)
    units: Int[Array, "stages replicas most"]
    count: int = eqx.field(static=True)
    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None
    pause: AbstractDelay | None = None
    pause_probability: Float[Array, ""] | float = 0.0

    def draw(
        self, key: PRNGKeyArray, sample: UInt32[Array, " samples"], operations: int
    ) -> Callable[[Rows, Array], Array]:
        """What units make of operations, from what they would take, in these samples."""
        words = threefry2x32(key_words(key), sample, jnp.zeros_like(sample))
        unit = jnp.arange(self.count, dtype=jnp.uint32)[:, None]

        def drawn(source: int) -> tuple[Array, Array]:
            shape = (self.count, sample.size)
            counter = jnp.broadcast_to(unit, shape)
            return threefry2x32(
                (words[0][None, :], words[1][None, :]), jnp.full(shape, source, jnp.uint32), counter
            )

        def of_groups(values: Array) -> Array:
            return samples_first(jnp.max(values[self.units], axis=2))

        factor = seconds = None
        if self.spread is not None:
            factor = of_groups(self.spread.quantile(levels_from_words(*drawn(0))))
        if self.jitter is not None:
            seconds = self.jitter.quantile(levels_from_words(*drawn(1)))
        if self.pause is not None:
            pause = pauses(self.pause, self.pause_probability, levels_from_words(*drawn(2)))
            seconds = pause if seconds is None else seconds + pause
        if seconds is None:
            return lambda rows, computing: computing if factor is None else computing * factor
        when = of_groups((drawn(3)[0] % jnp.uint32(operations)).astype(jnp.int32))
        seconds = of_groups(seconds)

        def with_seconds(rows: Rows, computing: Array) -> Array:
            meets = rows.position[:, None] == when
            stretched = computing if factor is None else computing * factor
            return stretched + jnp.where(meets, seconds, 0.0)

        return with_seconds


def pauses(law: AbstractDelay, probability: Array | float, levels: Array) -> Array:
    """Pauses, most of them of 0 s: one level says whether there is one, and then how long it is."""
    log_probability = jnp.log(jnp.asarray(probability))
    paused = levels < log_probability
    inside = jnp.where(paused, levels - log_probability, -1.0)
    return jnp.where(paused, law.quantile(inside), 0.0)


def samples_first(values: Array) -> Float[Array, "stages batch"]:
    """[stages, replicas, samples] to the order of the batch: samples first."""
    return jnp.swapaxes(values, 1, 2).reshape(values.shape[0], -1)
