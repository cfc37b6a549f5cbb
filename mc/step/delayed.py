r"""Exchanges that may be late: bounded staleness as a (max, +) recursion.

A rank may go on with step t when its own step t − 1 is done, and the exchange of step t − 1 − d is; the exchange of a step
starts when the slowest rank has computed it and the exchange before is over, since both need the network:

    C_r(t) = max(C_r(t − 1), D(t − 1 − d)) + X_r(t),        D(t) = max(max over r of C_r(t), D(t − 1)) + E(t).

With d = 0 that is a barrier. With d > 0 a rank that is late once catches up before anybody waits (Ho et al., NIPS 2013: stale
synchronous parallel), and the exchange goes on behind the next steps: only what does not hide is exposed. A step is
D(t) − D(t − 1), after a start that is thrown away. Who is late stays late for some steps, so steps are alike within a
sequence, and every rank is drawn.

The parts of the waterfall are differences of the same recursion, with the same X and E: without any exchange, with one
that no link disturbs, and with all.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def warm_up(staleness: int) -> int:
    """Steps that are thrown away: by then nothing is known of how all started at once."""
    return 16 * (staleness + 1)


def draw_delayed(
    times: Callable[[PRNGKeyArray], Float[Array, " ranks"]],
    exchange: Float[Array, "variants steps"],
    staleness: int,
    ranks: int,
    key: PRNGKeyArray,
) -> Float[Array, "variants kept"]:
    """Seconds from one exchange's end to the next one's, for several exchanges over the same computing.

    Args:
        times: what every rank takes in a step, from its key.
        exchange: what the exchange after each step takes, by variant, those of the start included.
        staleness: d, at least 1.
        ranks: how many.
        key: of the sequence.

    Returns:
        Steps after the start.
    """

    def drawn(index: Array) -> Float[Array, "1 ranks"]:
        return times(jax.random.fold_in(key, index))[None]

    return late_exchanges(drawn, exchange, staleness, ranks)


def late_exchanges(
    times: Callable[[Array], Float[Array, "#variants ranks"]],
    exchange: Float[Array, "variants steps"],
    staleness: int,
    ranks: int,
) -> Float[Array, "variants kept"]:
    """The same for computing that is known: `times` of the number of a step."""
    variants, steps = exchange.shape
    real = jnp.result_type(float)

    def one(state, indexed):
        done, ended = state  # [variants, ranks] and [variants, d + 1], the oldest exchange first
        index, took = indexed
        # All times from the end of the last exchange: they stay small.
        done = jnp.maximum(done, ended[:, :1]) + times(index)
        over = jnp.maximum(jnp.max(done, axis=1), ended[:, -1]) + took
        ended = jnp.concatenate([ended[:, 1:], over[:, None]], axis=1) - over[:, None]
        return (done - over[:, None], ended), over

    start = jnp.zeros((variants, ranks), real), jnp.zeros((variants, staleness + 1), real)
    _, found = jax.lax.scan(one, start, (jnp.arange(steps), exchange.T))
    return found[warm_up(staleness) :].T
