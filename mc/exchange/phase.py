"""The exchange: phases of a collective, each with a floor and what random links add to it.

A phase takes its latency floor and its transfer time, which are certain, and an excess, which is not: in
state k a link makes transfers c_k times longer and messages wait d_k longer, for all ranks that share it;
each rank's jitter comes on top. The phase ends with the slowest group.

Links that forget their state from step to step make the excess a law (`congestion_law`). Links that remember make a
sequence: given how many groups are in each state in a step (`mc.fabric.markov`), the slowest group is the slowest of the
slowest in each state, one draw per state.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from mc.delays import AbstractDelay, Constant, Discrete, Mixture, Shifted, Slowest, add, with_inverse
from mc.delays.checks import scalar
from mc.fabric import LinkStates, SharedLinks
from mc.random import draw_levels


class CountedExcess(eqx.Module):
    """What links add to a phase whose groups are counted by state.

    Attributes:
        links: which of the run's sequences of counts is read.
        fixed: seconds that each state adds.
        random: what a group adds by itself, beyond its state's seconds: one law for all states, one for each, or none.
    """

    links: int = eqx.field(static=True)
    fixed: Float[Array, " states"] = eqx.field(converter=scalar("excess", minimum=0.0))
    random: tuple[AbstractDelay | None, ...] = ()

    @staticmethod
    def of(
        links: int,
        states: LinkStates,
        transfer: ArrayLike,
        *,
        group: ArrayLike,
        jitter: AbstractDelay | None = None,
    ) -> "CountedExcess":
        """From the states of a link that `group` ranks share, each rank with its own `jitter`."""
        together = None if jitter is None else Slowest(jitter, group)
        random = (together,)
        if not states.is_fixed:
            random = tuple(_both(law, together) for law in states.queueing)
        fixed = states.excess(jnp.asarray(transfer, jnp.result_type(float)))
        return CountedExcess(links, fixed, random if any(law is not None for law in random) else ())

    def prepared(self) -> "CountedExcess":
        """The same with the tables that draws read."""
        laws = tuple(None if law is None else with_inverse(law) for law in self.random)
        return CountedExcess(self.links, self.fixed, laws)

    def draw(self, key: PRNGKeyArray, counts: Float[Array, "size states"]) -> Float[Array, " size"]:
        """The slowest group's excess in each step, given how many groups are in which state."""
        size, states = counts.shape
        present = counts > 0
        times = jnp.broadcast_to(self.fixed[None, :], counts.shape)
        if len(self.random) == 1 and self.random[0] is not None:
            law = with_inverse(self.random[0])
            levels = jax.vmap(lambda index: draw_levels(jax.random.fold_in(key, index), (size,)))
            drawn = Slowest(law, counts).quantile(levels(jnp.arange(states)).T)
            times = times + drawn
        elif self.random:
            columns = []
            for state, law in enumerate(self.random):
                if law is None:
                    columns.append(jnp.zeros(size, times.dtype))
                    continue
                levels = draw_levels(jax.random.fold_in(key, state), (size,))
                columns.append(Slowest(with_inverse(law), counts[:, state]).quantile(levels))
            times = times + jnp.stack(columns, axis=1)
        return jnp.max(jnp.where(present, times, 0.0), axis=1)


class ExchangePhase(eqx.Module):
    """One phase of a collective on one tier.

    Attributes:
        name: the tier's name and what runs on it.
        latency: the latency floor, seconds.
        transfer: bytes over bandwidth, and the reduction, with the links idle, seconds.
        excess: what random links add, the slowest group's: a law where they forget, by counts where they
            remember; None where nothing is random.
        queueing: what messages wait for each other at a receiver's port (incast), seconds; certain.
    """

    name: str = eqx.field(static=True)
    latency: Float[Array, ""] = eqx.field(converter=scalar("latency", minimum=0.0))
    transfer: Float[Array, ""] = eqx.field(converter=scalar("transfer", minimum=0.0))
    excess: AbstractDelay | CountedExcess | None = None
    queueing: Float[Array, ""] = eqx.field(converter=scalar("queueing", minimum=0.0), default=0.0)

    def prepared(self) -> "ExchangePhase":
        """The same with the tables that the exact method reads."""
        excess = self.excess
        if isinstance(excess, CountedExcess):
            excess = excess.prepared()
        elif excess is not None:
            excess = with_inverse(excess)
        return ExchangePhase(self.name, self.latency, self.transfer, excess, self.queueing)


def congestion_law(
    transfer: ArrayLike,
    *,
    group: ArrayLike,
    groups: ArrayLike,
    probabilities: Float[Array, " states"] | None = None,
    states: LinkStates | None = None,
    jitter: AbstractDelay | None = None,
) -> AbstractDelay | None:
    """What random links add to a phase: the law of the slowest of `groups` groups of `group` ranks.

    Args:
        transfer: the phase's transfer time with the link idle, seconds.
        group: ranks that share a link's state.
        groups: how many such groups take part.
        probabilities: of the link's states, drawn anew in each step; None for a link without states.
        states: what the states do.
        jitter: added to each rank's part in the phase; None for none.

    Returns:
        A delay, or None if nothing is random.
    """
    if probabilities is None or states is None:
        return None if jitter is None else Slowest(jitter, jnp.asarray(group) * jnp.asarray(groups))
    excess = states.excess(jnp.asarray(transfer, jnp.result_type(float)))
    if jitter is None and states.is_fixed:
        return Slowest(Discrete(excess, probabilities), groups)
    together = None if jitter is None else Slowest(jitter, group)
    queueing = states.queueing or (None,) * states.states
    laws = tuple(_behind(_both(law, together), excess[k]) for k, law in enumerate(queueing))
    return Slowest(Mixture(probabilities, laws), groups)


def congestion_of_links(
    transfer: ArrayLike, links: SharedLinks | None, ranks: int, jitter: AbstractDelay | None
) -> AbstractDelay | None:
    """What a tier's links add to a phase of `ranks` ranks, each step anew.

    Args:
        transfer: as for `congestion_law`.
        links: of the tier; None if they have no states.
        ranks: that take part.
        jitter: as for `congestion_law`.
    """
    if links is None:
        return congestion_law(transfer, group=1, groups=ranks, jitter=jitter)
    return congestion_law(
        transfer,
        group=links.group,
        groups=links.groups,
        probabilities=jnp.asarray(links.chain.stationary),
        states=links.states,
        jitter=jitter,
    )


def _both(one: AbstractDelay | None, other: AbstractDelay | None) -> AbstractDelay | None:
    if one is None or other is None:
        return other if one is None else one
    return add(one, other)


def _behind(law: AbstractDelay | None, fixed: Float[Array, ""]) -> AbstractDelay:
    return Constant(fixed) if law is None else Shifted(law, fixed)
