"""The exchange: phases of a collective, each with a floor and what random links add to it.

A phase takes its latency floor and its transfer time, which are certain, and an excess, which is not: in
state k a link makes transfers c_k times longer and messages wait d_k longer, for all ranks that share it;
each rank's jitter comes on top. The phase ends with the slowest group.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.delays import AbstractDelay, Discrete, Mixture, Shifted, Slowest
from mc.delays.checks import scalar


class ExchangePhase(eqx.Module):
    """One phase of a collective on one tier.

    Attributes:
        name: the tier's name and what runs on it.
        latency: the latency floor, seconds.
        transfer: bytes over bandwidth, and the reduction, with the links idle, seconds.
        excess: what random links add, the slowest group's; None where nothing is random.
    """

    name: str = eqx.field(static=True)
    latency: Float[Array, ""] = eqx.field(converter=scalar("latency", minimum=0.0))
    transfer: Float[Array, ""] = eqx.field(converter=scalar("transfer", minimum=0.0))
    excess: AbstractDelay | None = None


def congestion_law(
    transfer: ArrayLike,
    *,
    group: ArrayLike,
    groups: ArrayLike,
    probabilities: Float[Array, " states"] | None = None,
    slowdowns: Float[Array, " states"] | None = None,
    delays: Float[Array, " states"] | None = None,
    jitter: AbstractDelay | None = None,
) -> AbstractDelay | None:
    """What random links add to a phase: the law of the slowest of `groups` groups of `group` ranks.

    Args:
        transfer: the phase's transfer time with the link idle, seconds.
        group: ranks that share a link's state.
        groups: how many such groups take part.
        probabilities: of the link's states; None for a link without states.
        slowdowns: factor of each state on the transfer time, at least 1.
        delays: seconds each state adds.
        jitter: added to each rank's part in the phase; None for none.

    Returns:
        A delay, or None if nothing is random.
    """
    if probabilities is None or slowdowns is None or delays is None:
        return None if jitter is None else Slowest(jitter, jnp.asarray(group) * jnp.asarray(groups))
    excess = (jnp.asarray(slowdowns) - 1) * jnp.asarray(transfer) + jnp.asarray(delays)
    if jitter is None:
        return Slowest(Discrete(excess, probabilities), groups)
    together = Slowest(jitter, group)
    states = tuple(Shifted(together, excess[k]) for k in range(excess.shape[0]))
    return Slowest(Mixture(probabilities, states), groups)
