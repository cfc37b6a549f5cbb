"""How the steps of a transformer are drawn: in realisations, calls of a compiled function, and pieces of a call.

What a step meets (which ranks are slow, the states of links) depends on the seed and its numbers alone, so one step can be drawn
again by itself.
"""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, UInt32
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.experiment.build_training import TrainingStep, build_training
from mc.experiment.training_links import Disturbed, draw_states, draw_step_messages
from mc.pipeline import batch_for
from mc.random import stream
from mc.step import warm_up
from mc.training import LinksNow, Realisation, Sampling

# Samples per compiled call.
_CALL = 64


class Conditions(eqx.Module):
    """What the steps of a call meet.

    Attributes:
        kept: stays during a realisation.
        links: between stages and within them; None where nothing disturbs them. Where replicas exchange every H steps, those of
            all H of each sample.
        messages: of the step; likewise.
        key: of the realisation.
        sample: numbers of the steps, or of rounds of H.
    """

    kept: Realisation
    links: LinksNow | None
    messages: Disturbed | None
    key: PRNGKeyArray
    sample: UInt32[Array, " samples"]

    def only(self, place: int) -> "Conditions":
        """The same for one of the steps."""
        links, messages, sample = jax.tree.map(
            lambda each: each[..., place : place + 1], (self.links, self.messages, self.sample)
        )
        return Conditions(self.kept, links, messages, self.key, sample)


@dataclass(frozen=True)
class TrainingDraws:
    """The steps of an experiment. Make one with `draws_of_training`.

    Attributes:
        step: what is drawn of.
        key: root key of the run.
        realisations: of the cluster.
        per_realisation: steps of each, or rounds of them.
        method: how slowest ranks are drawn.
        piece: steps worked out at a time.
        call: steps per compiled call, a whole number of pieces.

    Rounds of a sequence whose exchanges may be late begin with some that are thrown away.
    """

    step: TrainingStep
    key: PRNGKeyArray
    realisations: int
    per_realisation: int
    method: Sampling
    piece: int
    call: int

    @property
    def rounds(self) -> int:
        """Of each realisation, with those that are thrown away."""
        return self.per_realisation + _early(self.step)

    @property
    def calls(self) -> int:
        """Compiled calls per realisation."""
        return -(-self.rounds // self.call)

    @cached_property
    def _states(self) -> list[NDArray[np.float64] | None]:
        steps = self.calls * self.call * self.step.steps
        return [
            None
            if each.links is None
            else each.links.chain.counts(
                stream(self.key, f"links {place}"), each.count, self.realisations, steps
            )
            for place, each in enumerate(self.step.tiers)
        ]

    def conditions(self, realisation: int, index: int) -> Conditions:
        """What the steps of one call of a realisation meet."""
        step, own = self.step, jax.random.fold_in(self.key, realisation)
        kept = Realisation(
            profile=jnp.asarray(step.profile[realisation], jnp.int32),
            factor=jnp.asarray(step.factor[realisation]),
            load=jnp.asarray(step.load[realisation]),
        )
        first, last = index * self.call, (index + 1) * self.call
        # What is thrown away has numbers that nothing else has, and the rest those that it has without.
        numbers = np.arange(first, last) - _early(step)
        sample = jnp.asarray(numbers.astype(np.uint32))
        if not step.tiers:
            return Conditions(kept, None, None, own, sample)
        chosen = slice(first * step.steps, last * step.steps)
        each_step = jnp.asarray(
            (numbers[:, None] * step.steps + np.arange(step.steps)).astype(np.uint32).ravel()
        )
        counts = [None if each is None else each[realisation, chosen] for each in self._states]
        now = draw_states(step.tiers, counts, own, each_step)
        return Conditions(
            kept, now.now, draw_step_messages(step.step_messages, now, own, each_step), own, sample
        )


def _early(step: TrainingStep) -> int:
    """Rounds of a sequence that are thrown away."""
    return warm_up(step.staleness) if step.staleness else 0


def draws_of_training(
    config: ExperimentConfig, key: PRNGKeyArray, like: TrainingStep | None = None
) -> TrainingDraws:
    """How the steps of an experiment whose model is a transformer are drawn.

    Args:
        config: the experiment.
        key: root key of the run.
        like: as for `build_training`.

    Raises:
        InputError: the experiment cannot be built, or asks for a method that it does not have.
    """
    if config.run.method == "grid":
        raise InputError(
            "run.method: expected `exact` or `direct` for a transformer, whose pipeline is sampled; got `grid`"
        )
    most = min(config.run.realisations, config.run.samples)
    step = build_training(config, key, most, like)
    realisations = most if step.remembers else 1
    per_realisation = -(-config.run.samples // realisations)
    piece = max(1, batch_for(step.timetable) // step.quiet.lockstep.replicas)
    call = min(-(-(per_realisation + _early(step)) // piece) * piece, max(1, _CALL // piece) * piece)
    method: Sampling = "direct" if step.every_rank or config.run.method == "direct" else "exact"
    return TrainingDraws(step, key, realisations, per_realisation, method, piece, call)
