"""What an algorithm is: counts for any number of ranks; the cost on a machine follows.

To add one, write a final class with its name, its collective and `counts`, and list it in `registry.py`; the
tests find it there and ask for an execution of it on real vectors.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from mc.collectives.cost import Cost, Counts, Machine
from mc.delays.checks import ParameterError, is_known


class AbstractAlgorithm(eqx.Module):
    """One way to carry out one collective.

    Attributes:
        name: of the algorithm, as users write it.
        collective: what it carries out.
    """

    name: ClassVar[str]
    collective: ClassVar[str]

    @abc.abstractmethod
    def counts(self, ranks: Float[Array, ""], radix: Int[Array, ""]) -> Counts:
        """Rounds, and bytes in multiples of the message, for two ranks or more.

        Args:
            ranks: n, a whole number as a float, exact up to 2²⁴ in float32.
            radix: k, for algorithms that have one.
        """

    def cost(self, ranks: ArrayLike, size: ArrayLike, machine: Machine) -> Cost:
        """The α–β–γ cost; every argument may be traced.

        It is differentiable in all of them; steps in `ranks` and in the radix have a derivative of zero.

        Args:
            ranks: how many take part, at least 1; one rank has nothing to do and costs nothing.
            size: bytes, counted as nccl-tests does: of the whole buffer.
            machine: what they run on.

        Raises:
            ParameterError: `ranks` is below 1 or `size` negative, where the value is known.
        """
        for name, value, least in (("ranks", ranks, 1), ("size", size, 0)):
            if is_known(value) and not np.all(np.asarray(value) >= least):
                raise ParameterError(f"{name}: expected a number >= {least}; got {value}")
        dtype = jnp.result_type(float)
        n, size = jnp.asarray(ranks, dtype), jnp.asarray(size, dtype)
        counts = self.counts(n, machine.radix)

        def unless_alone(count: ArrayLike) -> Float[Array, ""]:
            return jnp.where(n > 1, jnp.asarray(count, dtype), 0.0)

        rounds, hops = unless_alone(counts.rounds), unless_alone(counts.hops)
        return Cost(
            rounds=rounds + hops,
            bytes_per_rank=unless_alone(counts.sent) * size,
            latency_time=rounds * machine.latency + hops * machine.hop_latency,
            bandwidth_time=unless_alone(counts.carried) * size / machine.bandwidth,
            reduction_time=unless_alone(counts.combined) * size * machine.reduction_time_per_byte,
        )
