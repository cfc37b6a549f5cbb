"""What disturbs the messages of a training step: jitter, and the states of links, tier by tier.

A message belongs to the outermost tier that its group spans (`mc.training.crossings`). What a tier's `jitter` and
`congestion` say applies to each of its messages as it applies to a phase of a collective in `mc.exchange`: in state k
its bytes take c_k times as long, it waits d_k longer, and each rank's jitter comes on top; the slowest group counts. A
state lasts a step; jitter and random waiting are drawn anew for each message, of

- those that ranks wait for during a pass: as one sum per pass (`mc.training.lateness`), by the worst state among the
  links of the group;
- those between stages: one by one, by the worst state at either end;
- reductions of gradients and gathers of parameters: bucket by bucket, each stage by itself, over all of its links by
  their states (`mc.exchange.CountedExcess`); reductions of ZeRO 2 before the last take as much as that;
- the other messages of a step: over the links of the whole job.

Messages that move behind computing have the states of their links, in the part that is waited for, but no jitter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.delays import AbstractDelay, build_delay
from mc.exchange import CountedExcess
from mc.fabric import LinkStates, SharedLinks, shared_links, units_of
from mc.parallel import Plan
from mc.random import draw_levels, stream
from mc.training import LinksNow, Lockstep, Times, build_lateness
from mc.training.lateness import Lateness
from mc.training.replicas import GRADIENTS, PARAMETERS, REPLICATED

Role = Literal["reduce", "gather", "blocking"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DisturbedTier:
    """A tier whose messages are disturbed, and where groups meet its links.

    Attributes:
        index: of the tier.
        jitter: of a message of a rank; None for none.
        links: with their states; None where they have none.
        unit: of each rank that works, which link it uses, [stages, replicas, ranks].
        units: which links each group uses, [stages, replicas, most].
    """

    index: int
    jitter: AbstractDelay | None
    links: SharedLinks | None
    unit: NDArray[np.int64]
    units: NDArray[np.int64]

    @cached_property
    def count(self) -> int:
        """How many links there are."""
        return int(self.unit.max()) + 1

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which links each stage uses, [stages, links]."""
        found = np.zeros((self.unit.shape[0], self.count), bool)
        for row, units in zip(found, self.unit, strict=True):
            row[units] = True
        return found

    @cached_property
    def states(self) -> LinkStates:
        """What states do."""
        return LinkStates(np.ones(1), np.zeros(1)) if self.links is None else self.links.states

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """States by how long messages wait in them in the mean, the worst one last."""
        waits = np.asarray(self.states.delays, np.float64) + [
            0.0 if law is None else float(law.mean()) for law in self._queueing
        ]
        return np.argsort(waits, kind="stable")

    @property
    def _queueing(self) -> tuple[AbstractDelay | None, ...]:
        return self.states.queueing or (None,) * self.states.states

    def lateness(self, ranks: int, counts: Sequence[int]) -> Lateness | None:
        """How late so many messages of a group are, states in their order."""
        return build_lateness(self.jitter, [self._queueing[state] for state in self.order], ranks, counts)

    def of_groups(self, state: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """The worst factor, delay and place in `order` that groups meet, from [samples, links]; samples last."""
        place = np.argsort(self.order)
        values = (
            np.asarray(self.states.slowdowns, np.float64),
            np.asarray(self.states.delays, np.float64),
            place,
        )
        slowdown, delay, worst = (
            np.moveaxis(each[state][:, self.units].max(axis=-1), 0, -1) for each in values
        )
        return slowdown, delay, worst

    def of_stages(self, state: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """How many links of each stage, and of the job, are in which state: [samples, stages or 1, states]."""
        each = (state[..., None] == np.arange(self.states.states)).astype(np.float64)
        return np.einsum("nls,pl->nps", each, self.used.astype(np.float64)), each.sum(axis=1, keepdims=True)


class StepMessage(eqx.Module):
    """Messages of a step among replicas, or of all.

    Attributes:
        role: what they are of.
        tier: place of the tier that they cross, among the disturbed ones.
        count: how many, one after the other.
        excess: what links add to one.
    """

    role: Role = eqx.field(static=True)
    tier: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    excess: CountedExcess


class Disturbed(eqx.Module):
    """Seconds that links add to the messages of a step.

    Attributes:
        reduce: to reductions of gradients.
        gather: to gathers of parameters.
        blocking: to the others.
    """

    reduce: Float[Array, "stages samples"]
    gather: Float[Array, "stages samples"]
    blocking: Float[Array, " samples"]


def disturbed_tiers(
    config: ExperimentConfig, plan: Plan, together: Lockstep, crossed: set[int]
) -> tuple[DisturbedTier, ...]:
    """The tiers that messages cross and whose links disturb them."""
    found = []
    for index, tier in enumerate(config.cluster.tiers):
        if index not in crossed or (tier.jitter is None and tier.congestion is None):
            continue
        scope = "all" if tier.congestion is None else tier.congestion.shared_by
        ranks = plan.ranks + config.backup_ranks
        unit = units_of(config.cluster, scope, ranks)
        jitter = None if tier.jitter is None else build_delay(tier.jitter)
        links = shared_links(config.cluster, index, ranks)
        found.append(DisturbedTier(index, jitter, links, unit[together.members], together.units(unit)))
    return tuple(found)


def step_messages(
    tiers: Sequence[DisturbedTier], times: Times, plan: Plan, tier_of
) -> tuple[StepMessage, ...]:
    """The messages of a step that disturbed tiers carry."""
    place_of = {tier.index: place for place, tier in enumerate(tiers)}
    found = []
    for message, price in times.step:
        place = place_of.get(tier_of(message.group))
        if place is None:
            continue
        role, count = _role(message), message.each
        if role == "reduce" and plan.zero == 2:
            count = count / plan.passes
        tier = tiers[place]
        ranks = tier.unit.size if role == "blocking" else tier.unit[0].size
        links = tier.count if role == "blocking" else int(tier.used.sum(axis=1).min())
        # Where links have no states they count as one, behind which all ranks are.
        excess = CountedExcess.of(
            place, tier.states, float(price.bandwidth), group=float(-(-ranks // links)), jitter=tier.jitter
        )
        found.append(StepMessage(role, place, max(round(count), 1), excess.prepared()))
    return tuple(found)


def _role(message) -> Role:
    if message.dimension not in REPLICATED:
        return "blocking"
    if message.where == GRADIENTS:
        return "reduce"
    return "gather" if message.what == PARAMETERS else "blocking"


class LinkStatesDrawn(eqx.Module):
    """The states of some steps.

    Attributes:
        now: where groups meet them.
        of_stages: per disturbed tier, links of each stage by state.
        of_job: likewise, of all.
    """

    now: LinksNow
    of_stages: tuple[Float[Array, "samples stages states"], ...]
    of_job: tuple[Float[Array, "samples one states"], ...]


def draw_states(
    tiers: Sequence[DisturbedTier], counts: Sequence[Floats | None], key: PRNGKeyArray, sample: Array
) -> LinkStatesDrawn:
    """The states of all links, from how many are in which state.

    How many links are in which state is drawn with the chain; which of them, at random.
    """
    groups, of_stages, of_job = [], [], []
    for place, (tier, found) in enumerate(zip(tiers, counts, strict=True)):
        if found is None:
            state = np.zeros((sample.size, tier.count), np.int64)
        else:
            level = np.asarray(levels_of_samples(stream(key, f"which links {place}"), sample, tier.count))
            rank = np.argsort(np.argsort(level, axis=1), axis=1)
            state = (rank[..., None] >= np.cumsum(found, axis=1)[:, None, :-1]).sum(axis=-1)
        groups.append(tier.of_groups(state))
        stages, job = tier.of_stages(state)
        of_stages.append(jnp.asarray(stages))
        of_job.append(jnp.asarray(job))
    stretch, delay, worst = (np.stack(each) for each in zip(*groups, strict=True))
    now = LinksNow(jnp.asarray(stretch), jnp.asarray(delay), jnp.asarray(worst, jnp.int32))
    return LinkStatesDrawn(now, tuple(of_stages), tuple(of_job))


@eqx.filter_jit
def draw_step_messages(
    messages: tuple[StepMessage, ...],
    states: LinkStatesDrawn,
    key: PRNGKeyArray,
    sample: UInt32[Array, " samples"],
) -> Disturbed:
    """What links add to the messages of the step in these samples."""
    stages = states.now.stretch.shape[1]
    added = {
        "reduce": jnp.zeros((stages, sample.size)),
        "gather": jnp.zeros((stages, sample.size)),
        "blocking": jnp.zeros((1, sample.size)),
    }
    for index, each in enumerate(messages):
        counts = (states.of_job if each.role == "blocking" else states.of_stages)[each.tier]
        added[each.role] = added[each.role] + _added(each, counts, stream(key, f"messages {index}"), sample).T
    return Disturbed(added["reduce"], added["gather"], added["blocking"][0])


def _added(
    message: StepMessage, counts: Float[Array, "samples rows states"], key: PRNGKeyArray, sample: Array
) -> Float[Array, "samples rows"]:
    def one(own: tuple[Array, Array]) -> Float[Array, " rows"]:
        number, links = own
        every = jnp.tile(links, (message.count, 1))
        drawn = message.excess.draw(jax.random.fold_in(key, number), every)
        return jnp.sum(drawn.reshape(message.count, -1), axis=0)

    return jax.vmap(one)((sample, counts))


def levels_of_samples(
    key: PRNGKeyArray, numbers: Int[Array, " samples"], count: int
) -> Float[Array, "samples count"]:
    """So many for each sample, whichever others are drawn with it."""
    return _levels(key, numbers, count)


@eqx.filter_jit
def _levels(key: PRNGKeyArray, numbers: Array, count: int) -> Float[Array, "samples count"]:
    return jax.vmap(lambda number: draw_levels(jax.random.fold_in(key, number), (count,)))(numbers)
