"""A step whose ranks wait otherwise than for all of them, at once, in every step."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mc.delays import Method, with_inverse
from mc.random import stream
from mc.step.compute import Compute
from mc.step.delayed import draw_delayed, warm_up
from mc.step.persistent import Classes
from mc.step.step import Step, StepDraws, of_cell
from mc.step.waiting import Waiting, draw_waiting, times_of_ranks


class MitigatedStep(eqx.Module):
    """A step with mitigations of stragglers. Seconds are those of one step, where several go between two exchanges their mean.

    Attributes:
        step: its compute phase (from `build_waiting`), and the phases of its exchange.
        waiting: who waits for whom.
    """

    step: Step
    waiting: Waiting

    @property
    def compute(self) -> Compute:
        """The phase before the exchange."""
        return self.step.compute

    @property
    def draws_every_rank(self) -> bool:
        """Whether a draw costs as much as there are ranks."""
        return self.waiting.every_rank

    def latency_floor(self) -> Float[Array, ""]:
        """Latency of all phases, seconds per step."""
        return self.step.latency_floor() / self.waiting.local_steps

    def transfer(self) -> Float[Array, ""]:
        """Transfer time of all phases with idle links, seconds per step."""
        return self.step.transfer() / self.waiting.local_steps

    def prepared(self) -> "MitigatedStep":
        """The same with the tables that the exact method reads."""
        if not self.waiting.every_rank:
            return MitigatedStep(self.step.prepared(), self.waiting)
        # Nobody asks for the law of a unit.
        compute = eqx.tree_at(lambda each: each.rank, self.compute, with_inverse(self.compute.rank))
        phases = tuple(phase.prepared() for phase in self.step.phases)
        return MitigatedStep(Step(compute, phases), self.waiting)

    def draw(
        self,
        key: PRNGKeyArray,
        realisations: Int[Array, " cells"],
        chunks: Int[Array, " cells"],
        classes: Classes | None = None,
        link_counts: tuple[Float[Array, "cells size states"], ...] = (),
        *,
        size: int,
        method: Method = "exact",
    ) -> StepDraws:
        """`size` steps for each cell; arguments as for `Step.draw`."""
        waiting, compute = self.waiting, self.compute

        def one_cell(cell):
            realisation, chunk, kinds, counts = cell
            own = of_cell(key, realisation, chunk)
            place = jax.random.fold_in(stream(key, "places"), realisation)
            if waiting.staleness:
                return self._delayed(own, place, kinds, counts, size, method)
            computed = draw_waiting(
                compute,
                waiting,
                stream(own, "compute"),
                size,
                classes=kinds,
                realisation=place,
                method=method,
            )
            congestion = self.step.congestion(own, counts, size, method)
            return StepDraws(computed, congestion / waiting.local_steps)

        return jax.lax.map(one_cell, (realisations, chunks, classes, link_counts))

    def _delayed(
        self,
        own: PRNGKeyArray,
        place: PRNGKeyArray,
        classes: Classes | None,
        counts: tuple[Float[Array, "size states"], ...],
        size: int,
        method: Method,
    ) -> StepDraws:
        waiting = self.waiting
        early = warm_up(waiting.staleness)
        # During the start links stay as they are in the first step.
        longer = tuple(jnp.concatenate([jnp.repeat(each[:1], early, axis=0), each]) for each in counts)
        congestion = self.step.congestion(own, longer, early + size, method) / waiting.local_steps
        floor = jnp.broadcast_to(self.latency_floor() + self.transfer(), congestion.shape)
        exchange = jnp.stack([jnp.zeros_like(floor), floor, floor + congestion])
        times = times_of_ranks(self.step.compute, waiting, classes, place)
        found = draw_delayed(times, exchange, waiting.staleness, waiting.started, stream(own, "compute"))
        return StepDraws(found[0], found[2] - found[1], found[1] - found[0])
