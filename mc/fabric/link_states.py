"""Random link states: what a link's state does to the messages that cross it, and draws for every group.

A *group* is the ranks that share a link (or a bundle of paths); all see its state together. In state k transfers
take c_k times as long and messages wait d_k longer. Which state a link is in is a chain in time
(`mc.fabric.markov`), kept apart: the chain is arithmetic on the host, slowdowns and delays are numbers that one
compiled program serves and that can be differentiated.

**Several paths.** A group whose traffic is spread over p paths has the composition of their states as its state. With
*adaptive* routing a path carries as much as it is fast, so bandwidths add up: the slowdown is the harmonic mean of
the paths', p / Σ(1/c), and the delay their mean weighted by what they carry. (All paths then finish together; a message
so short that a path's delay alone exceeds its time would avoid that path and do better.) With *oblivious* spraying,
each path carries 1/p, and the message is there when the slowest path has delivered: the largest slowdown, and the
largest delay. Neither is the mean of the slowdowns: two paths of which one is 4× slower take 1.6× as long
adaptively and 4× obliviously, not 2.5×.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mc.delays import AbstractDelay
from mc.delays.checks import scalar
from mc.fabric.markov import LinkStateError, MarkovChain, compositions, on_paths
from mc.random import draw_levels, stream

Routing = Literal["adaptive", "oblivious"]


class LinkStates(eqx.Module):
    """What each state of a link does.

    Attributes:
        slowdowns: factor on transfer times, at least 1.
        delays: seconds of queueing, the fixed part.
        queueing: the random part of each state's delay; None where there is none.
    """

    slowdowns: Float[Array, " states"] = eqx.field(converter=scalar("slowdown", minimum=1.0))
    delays: Float[Array, " states"] = eqx.field(converter=scalar("delay", minimum=0.0))
    queueing: tuple[AbstractDelay | None, ...] = ()

    def __check_init__(self):
        """As many delays as slowdowns."""
        shapes = jnp.shape(self.slowdowns), jnp.shape(self.delays)
        if len(shapes[0]) != 1 or shapes[0] != shapes[1] or len(self.queueing) not in (0, *shapes[0]):
            raise LinkStateError(
                "expected a slowdown and a delay for each state; "
                f"got {shapes[0]}, {shapes[1]} and {len(self.queueing)} laws of queueing"
            )

    @property
    def states(self) -> int:
        """How many states there are."""
        return self.slowdowns.shape[0]

    @property
    def is_fixed(self) -> bool:
        """Whether a state has no randomness of its own."""
        return all(law is None for law in self.queueing)

    def excess(self, transfer: Float[Array, ""]) -> Float[Array, " states"]:
        """Seconds that each state adds to a transfer of so many seconds, without the random part."""
        return (self.slowdowns - 1) * transfer + self.delays


class SharedLinks(eqx.Module):
    """The links of a tier: a chain, what its states do, and who shares a link.

    Attributes:
        chain: of the state of one group's link, or bundle of paths.
        states: what they do.
        group: ranks that share it.
        groups: how many such groups there are.
    """

    chain: MarkovChain = eqx.field(static=True)
    states: LinkStates
    group: int = eqx.field(static=True)
    groups: int = eqx.field(static=True)

    def __check_init__(self):
        """A state of the chain for each of the links."""
        if self.chain.states != self.states.states:
            raise LinkStateError(
                f"expected as many states as the chain has, {self.chain.states}; got {self.states.states}"
            )

    def group_of(self, rank: Int[Array, "*shape"]) -> Int[Array, "*shape"]:
        """Which group each rank is in; consecutive ranks share."""
        return rank // self.group


def spread_over_paths(
    chain: MarkovChain, states: LinkStates, paths: int, routing: Routing = "adaptive"
) -> tuple[MarkovChain, LinkStates]:
    """The chain and the effect of a bundle of `paths` paths, each in a state of its own.

    Raises:
        LinkStateError: a state has a random delay, or there are too many compositions.
    """
    if not isinstance(paths, int) or isinstance(paths, bool) or paths < 1:
        raise LinkStateError(f"paths: expected a whole number of at least 1; got {paths!r}")
    if routing not in ("adaptive", "oblivious"):
        raise LinkStateError(f"routing: expected `adaptive` or `oblivious`; got {routing!r}")
    if paths == 1:
        return chain, states
    if not states.is_fixed:
        raise LinkStateError("expected fixed delays where traffic is spread over several paths; got a law")
    counts = jnp.asarray(compositions(chain.states, paths), states.slowdowns.dtype)
    if routing == "adaptive":
        rates = 1 / states.slowdowns
        carried = counts @ rates
        slowdowns, delays = paths / carried, (counts @ (rates * states.delays)) / carried
    else:
        present = counts > 0
        slowdowns = jnp.max(jnp.where(present, states.slowdowns[None], 1.0), axis=1)
        delays = jnp.max(jnp.where(present, states.delays[None], 0.0), axis=1)
    # A harmonic mean of ones may round to just below one.
    return on_paths(chain, paths), LinkStates(jnp.maximum(slowdowns, 1.0), delays)


def draw_link_factors(
    links: SharedLinks, key: PRNGKeyArray, samples: int
) -> tuple[Float[Array, "groups samples"], Float[Array, "groups samples"]]:
    """Slowdown and queueing delay of every group's link, in independent moments of the stationary chain.

    For an executor that follows every message; `SharedLinks.group_of` says whose link a rank uses. What group i sees in
    sample s depends on the key, i and s, not on how many groups there are.

    Args:
        links: chain, states and groups.
        key: a threefry key.
        samples: how many moments.

    Returns:
        Factors on transfer times and seconds of delay.
    """

    def one_group(index):
        own = jax.random.fold_in(key, index)
        level = draw_levels(stream(own, "state"), (samples,))
        state = jnp.sum(level[:, None] < _ends(links.chain.stationary)[None, :], axis=1)
        delay = links.states.delays[state]
        for place, law in enumerate(links.states.queueing):
            if law is not None:
                random = law.quantile(draw_levels(stream(own, f"queueing {place}"), (samples,)))
                delay = delay + jnp.where(state == place, random, 0.0)
        return links.states.slowdowns[state], delay

    return jax.lax.map(one_group, jnp.arange(links.groups))


def _ends(stationary: Sequence[float] | np.ndarray) -> Float[Array, " ends"]:
    # log P(state > k) for all k but the last: a state is the number of ends above the level.
    after = np.cumsum(np.asarray(stationary)[::-1])[::-1][1:]
    with np.errstate(divide="ignore"):
        return jnp.asarray(np.log(np.minimum(after, 1.0)), jnp.result_type(float))
