"""How late messages are on a tier whose links disturb them, beside what the state of the link makes of their bytes.

A message of a group is over when its slowest rank's is, and waits as the state of the link says: with jitter J on each of
g ranks and the law Q_k of what a link in state k adds,

    late = max of g copies of J + Q_k,

drawn anew for each message. n messages that ranks wait for one after the other are late by the sum of n such times,
whose law is tabulated once for each n and k (`mc.delays.quantiles`) and drawn as one number.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from mc.delays import AbstractDelay, Constant, Slowest, with_inverse
from mc.delays.quantiles import KNOTS, quantiles_of, sum_of, total_of
from mc.training.tables import QuantileTable, table_of

# Levels of the source with a number; a word of it.
Levels = Callable[[Array | int], Float[Array, "stages batch"]]


class Lateness(eqx.Module):
    """The lateness of messages on a tier. Make one with `build_lateness`.

    Attributes:
        jitter: of one rank's message; None for none.
        queueing: what each state adds at random; none for none.
        ranks: that send at once.
        most: messages one after the other.
        row: of the table, for each number of messages.
        table: by that row and by state.
    """

    jitter: AbstractDelay | None
    queueing: tuple[AbstractDelay | None, ...]
    ranks: int = eqx.field(static=True)
    most: int = eqx.field(static=True)
    row: Int[Array, " counts"]
    table: QuantileTable

    def draw(
        self,
        messages: Int[Array, "stages #batch"],
        state: Int[Array, "stages batch"],
        word: UInt32[Array, "stages batch"],
    ) -> Float[Array, "stages batch"]:
        """How late so many messages are together, on links in these states."""
        return self.table.look_up(self.row[messages], state, word)

    def draw_each(
        self, messages: Int[Array, "stages #batch"], state: Int[Array, "stages batch"], levels: Levels
    ) -> Float[Array, "stages batch"]:
        """The same, message by message and rank by rank."""

        def one(index: Array, total: Array) -> Array:
            source = index * (self.ranks + 1)
            late = jnp.zeros(state.shape)
            jitter = self.jitter
            if jitter is not None:

                def of_rank(rank: Array, most: Array) -> Array:
                    return jnp.maximum(most, jitter.quantile(levels(source + 1 + rank)))

                late = jax.lax.fori_loop(0, self.ranks, of_rank, late)
            for place, law in enumerate(self.queueing):
                if law is not None:
                    late = late + jnp.where(state == place, law.quantile(levels(source)), 0.0)
            return total + jnp.where(index < messages, late, 0.0)

        return jax.lax.fori_loop(0, self.most, one, jnp.zeros(state.shape))


def build_lateness(
    jitter: AbstractDelay | None,
    queueing: Sequence[AbstractDelay | None],
    ranks: int,
    counts: Sequence[int],
) -> Lateness | None:
    """The lateness of messages; None where nothing is random.

    Args:
        jitter: of one rank's message.
        queueing: what each state adds at random.
        ranks: that send at once.
        counts: numbers of messages, one after the other, that there are.
    """
    laws = tuple(None if law is None else with_inverse(law) for law in queueing)
    if jitter is None and all(law is None for law in laws):
        return None
    together = np.zeros(KNOTS)
    if jitter is not None:
        jitter = with_inverse(jitter)
        # The slowest of constants is one of them.
        together = quantiles_of(jitter if isinstance(jitter, Constant) else Slowest(jitter, float(ranks)))
    one = [together if law is None else sum_of(together, quantiles_of(law)) for law in laws or (None,)]
    numbers = sorted({0, *counts})
    row = np.zeros(numbers[-1] + 1, np.int32)
    row[numbers] = np.arange(len(numbers))
    table = table_of(np.array([[total_of(each, count) for each in one] for count in numbers]))
    return Lateness(jitter, laws, ranks, numbers[-1], jnp.asarray(row), table)
