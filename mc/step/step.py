"""A step and its draws.

The compute phase and the phases of the exchange follow each other, each ended by its slowest rank; a step's
time is their sum. Draws are kept by part, so that where the time goes is read off the same samples as how
long it takes.

A draw depends on the seed, the realisation, the chunk and its place in the chunk. How many chunks are drawn
in one call, and on how many devices, changes nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mc.delays import Method, sampler, with_inverse
from mc.random import stream
from mc.step.compute import Compute
from mc.step.exchange import ExchangePhase

# What a step is made of, in the order of the waterfall.
PARTS = ("compute", "straggler_wait", "bandwidth", "latency_floor", "congestion")


class StepDraws(eqx.Module):
    """The random parts of sampled steps, seconds; shapes agree.

    Attributes:
        compute: compute time of the slowest rank.
        congestion: what random links add.
    """

    compute: Float[Array, "*shape"]
    congestion: Float[Array, "*shape"]


class Step(eqx.Module):
    """Compute, then the phases of the exchange."""

    compute: Compute
    phases: tuple[ExchangePhase, ...]

    def latency_floor(self) -> Float[Array, ""]:
        """Latency of all phases, seconds."""
        return sum((phase.latency for phase in self.phases), jnp.zeros(()))

    def transfer(self) -> Float[Array, ""]:
        """Transfer time of all phases with idle links, seconds."""
        return sum((phase.transfer for phase in self.phases), jnp.zeros(()))

    def prepared(self) -> "Step":
        """The same step with the tables that the exact method reads, built once per parameter set."""
        compute = eqx.tree_at(lambda law: law.rank, self.compute, with_inverse(self.compute.rank))
        phases = tuple(
            ExchangePhase(
                phase.name,
                phase.latency,
                phase.transfer,
                None if phase.excess is None else with_inverse(phase.excess),
            )
            for phase in self.phases
        )
        return Step(compute, phases)

    def draw(
        self,
        key: PRNGKeyArray,
        realisations: Int[Array, " cells"],
        chunks: Int[Array, " cells"],
        slow_chips: Float[Array, " cells"],
        *,
        size: int,
        method: Method = "exact",
    ) -> StepDraws:
        """`size` steps for each cell, a cell being one chunk of one realisation of the cluster.

        Args:
            key: root key of the run.
            realisations: which realisation each cell belongs to.
            chunks: which chunk of it the cell is.
            slow_chips: how many chips are slow in the cell's realisation.
            size: steps per cell.
            method: how slowest ranks are drawn.

        Returns:
            Draws of shape (cells, size).
        """

        def one_cell(cell):
            realisation, chunk, slow = cell
            own = jax.random.fold_in(jax.random.fold_in(key, realisation), chunk)
            compute = sampler(self.compute.slowest(slow), method)(stream(own, "compute"), size)
            congestion = jnp.zeros_like(compute)
            for index, phase in enumerate(self.phases):
                if phase.excess is not None:
                    source = stream(own, f"exchange {index}")
                    congestion = congestion + sampler(phase.excess, method)(source, size)
            return StepDraws(compute, congestion)

        return jax.lax.map(one_cell, (realisations, chunks, slow_chips))
