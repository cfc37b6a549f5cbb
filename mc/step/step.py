"""A step and its draws.

The compute phase and the phases of the exchange follow each other, each ended by its slowest rank; a step's
time is their sum. Draws are kept by part, so that where the time goes is read off the same samples as how
long it takes.

A draw depends on the seed, the realisation, the chunk and its place in the chunk. How many chunks are drawn
in one call, and on how many devices, changes nothing. What goes on from step to step (which chips are slow, which
links are congested) is drawn before, for whole realisations, and handed in.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray

from mc.delays import Method, sampler
from mc.exchange import CountedExcess, ExchangePhase
from mc.random import stream
from mc.step.compute import Compute
from mc.step.persistent import Classes

# What a step is made of, in the order of the waterfall.
PARTS = ("compute", "straggler_wait", "bandwidth", "latency_floor", "congestion")


class StepDraws(eqx.Module):
    """The random parts of sampled steps, seconds; shapes agree.

    Attributes:
        compute: compute time of the slowest rank.
        congestion: what random links, and messages that queue for one port, add.
        exchange: latency and transfer, where they vary since a part of them hides; None where they do not.
    """

    compute: Float[Array, "*shape"]
    congestion: Float[Array, "*shape"]
    exchange: Float[Array, "*shape"] | None = None


class Step(eqx.Module):
    """Compute, then the phases of the exchange."""

    compute: Compute
    phases: tuple[ExchangePhase, ...]

    @property
    def draws_every_rank(self) -> bool:
        """Whether a draw costs as much as there are ranks."""
        return self.compute.every_rank is not None

    def latency_floor(self) -> Float[Array, ""]:
        """Latency of all phases, seconds."""
        return sum((phase.latency for phase in self.phases), jnp.zeros(()))

    def transfer(self) -> Float[Array, ""]:
        """Transfer time of all phases with idle links, seconds."""
        return sum((phase.transfer for phase in self.phases), jnp.zeros(()))

    def prepared(self) -> "Step":
        """The same step with the tables that the exact method reads, built once per parameter set."""
        return Step(self.compute.prepared(), tuple(phase.prepared() for phase in self.phases))

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
        """`size` steps for each cell, a cell being one chunk of one realisation of the cluster.

        Args:
            key: root key of the run.
            realisations: which realisation each cell belongs to.
            chunks: which chunk of it the cell is.
            classes: persistent slowness of each cell's realisation (`draw_classes`); None if there is none.
            link_counts: for each set of links that remember, how many groups are in each state in each step.
            size: steps per cell.
            method: how slowest ranks are drawn.

        Returns:
            Draws of shape (cells, size).
        """

        def one_cell(cell):
            realisation, chunk, kinds, counts = cell
            own = of_cell(key, realisation, chunk)
            place = jax.random.fold_in(stream(key, "places"), realisation)
            compute = self.compute.draw(
                stream(own, "compute"), size, classes=kinds, realisation=place, method=method
            )
            return StepDraws(compute, self.congestion(own, counts, size, method))

        return jax.lax.map(one_cell, (realisations, chunks, classes, link_counts))

    def congestion(
        self,
        own: PRNGKeyArray,
        counts: tuple[Float[Array, "size states"], ...],
        size: int,
        method: Method = "exact",
    ) -> Float[Array, " size"]:
        """What random links add in `size` steps of a cell with the key `own`; `counts` as in `draw`, of the cell."""
        congestion = jnp.zeros(size, jnp.result_type(float))
        for index, phase in enumerate(self.phases):
            source = stream(own, f"exchange {index}")
            if isinstance(phase.excess, CountedExcess):
                congestion = congestion + phase.excess.draw(source, counts[phase.excess.links])
            elif phase.excess is not None:
                congestion = congestion + sampler(phase.excess, method)(source, size)
            congestion = congestion + phase.queueing
        return congestion

    def common_to_all(
        self, key: PRNGKeyArray, realisation: int, chunk: int, *, size: int, method: Method = "exact"
    ) -> tuple[Float[Array, " size"], Float[Array, " size"]]:
        """The factor and the seconds that all ranks have in common in the steps of one cell, as `draw` draws them."""
        return self.compute.common_to_all(stream(of_cell(key, realisation, chunk), "compute"), size, method)


def of_cell(key: PRNGKeyArray, realisation: ArrayLike, chunk: ArrayLike) -> PRNGKeyArray:
    """The key of a chunk of a realisation."""
    return jax.random.fold_in(jax.random.fold_in(key, realisation), chunk)
