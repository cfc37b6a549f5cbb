"""Random numbers for operations: words found by the number of the operation and that of the trial.

A draw depends on the key, the number of its sample, of its replica and of its operation (`Rows.number`), not on how many
samples or replicas there are, in which pieces they are worked out, or in which order a schedule runs the operations: two
schedules of as many stages, micro-batches and chunks share their noise.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from mc.pipeline.timetable import Rows
from mc.random import key_words, levels_from_words, threefry2x32

# z/v as a polynomial in √(v + _SHIFT) − _CENTRE, where the tail Φ(−z) is e^(−v)/2: fitted here to a relative error of
# 7·10⁻⁶ for 0 <= v <= 32·log 2, which is all that 32 bits can have.
_SHIFT, _CENTRE = 0.6, 2.77427916
_RATIO = (
    -1.1571252e-05,
    5.84155395e-05,
    -0.00012209169,
    0.00031969654,
    -0.00130728241,
    0.00456396317,
    -0.0147278974,
    0.0475218706,
    -0.15138405,
    0.471113246,
)

_Words = tuple[UInt32[Array, "stages batch"], UInt32[Array, "stages batch"]]


class Draws(eqx.Module):
    """A source of noise for the operations of each trial. Make one with `draws_of`.

    Attributes:
        words_of_trial: the two words of a key for each column of the batch.
    """

    words_of_trial: tuple[UInt32[Array, " batch"], UInt32[Array, " batch"]]

    def words(self, rows: Rows, source: int = 0) -> _Words:
        """Two independent words for each operation; other ones for each number of a source."""
        number = rows.number.astype(jnp.uint32)
        low, high = (word[None, :] for word in self.words_of_trial)
        shape = (number.size, low.size)
        counter = jnp.broadcast_to(number[:, None], shape)
        return threefry2x32((low, high), jnp.full(shape, source, jnp.uint32), counter)

    def levels(self, rows: Rows, source: int = 0) -> Float[Array, "stages batch"]:
        """Levels for the quantile of a delay (`mc.random`), of 64 bits."""
        return levels_from_words(*self.words(rows, source))

    def normals(
        self, rows: Rows, source: int = 0
    ) -> tuple[Float[Array, "stages batch"], Float[Array, "stages batch"]]:
        """Two independent standard normal numbers, of 32 bits each: in half the time of levels."""
        first, second = self.words(rows, source)
        return normal_from_word(first), normal_from_word(second)


def draws_of(
    key: PRNGKeyArray,
    sample: UInt32[Array, " batch"],
    replica: UInt32[Array, " batch"] | None = None,
) -> Draws:
    """The draws of a batch.

    Args:
        key: a threefry key, of one source (`mc.random.stream`).
        sample: number of the sample that each column of the batch belongs to.
        replica: and of its replica; all 0 without it.
    """
    sample = jnp.asarray(sample, jnp.uint32)
    replica = jnp.zeros_like(sample) if replica is None else jnp.asarray(replica, jnp.uint32)
    return Draws(threefry2x32(key_words(key), sample, replica))


def normal_from_word(word: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """A standard normal number from a uniform word, increasing in it; to 10⁻⁵ of its size, up to ±6.3.

    `ndtri` has three branches, and all of them are worked out where values of all three are in one array; this has
    one, and loses nothing in the tails, as it starts from the nearer end.
    """
    real = jnp.result_type(float)
    tail = (jnp.minimum(word, ~word).astype(real) + 0.5) * 2.0**-31
    depth = -jnp.log(tail)
    out = jnp.sqrt(depth + _SHIFT) - _CENTRE
    ratio = jnp.full_like(out, _RATIO[0])
    for coefficient in _RATIO[1:]:
        ratio = ratio * out + coefficient
    size = ratio * depth
    return jnp.where(word < jnp.uint32(1 << 31), -size, size)
