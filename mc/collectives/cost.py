"""What a collective costs without any jitter: the α–β–γ model, and the counts that it multiplies.

Every algorithm here is linear in the message: its time is (rounds)·α + (bytes)/bandwidth + (bytes
combined)·γ, with counts that depend on the number of ranks alone. An algorithm states its counts (`Counts`);
the machine turns them into seconds (`Cost`).

References: R. Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994); R. Thakur, R.
Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19 (2005).
"""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from mc.collectives.integers import to_integer
from mc.delays.checks import ParameterError, is_known, scalar

# Fan-in of the k-ary tree where the fabric does not suggest another.
DEFAULT_RADIX = 4


def _radix(value: Any) -> Int[Array, ""]:
    if is_known(value) and not np.all(np.asarray(value) >= 2):
        raise ParameterError(f"radix: expected a whole number >= 2; got {value}")
    return to_integer(value) if is_known(value) else value


class Machine(eqx.Module):
    """What ranks exchange messages on.

    Ranks are alike and fully connected; each sends one message and receives one at a time.

    Attributes:
        latency: α, seconds per round.
        bandwidth: bytes/s in one direction of one rank.
        reduction_time_per_byte: γ, seconds to combine one byte with another.
        hop_latency: seconds per switch hop, for in-network algorithms.
        radix: inputs that one node of a k-ary tree (or one reducing switch) combines, at least 2.
    """

    latency: Float[Array, ""] = eqx.field(converter=scalar("latency", minimum=0.0))
    bandwidth: Float[Array, ""] = eqx.field(converter=scalar("bandwidth", minimum=0.0, open_minimum=True))
    reduction_time_per_byte: Float[Array, ""] = eqx.field(
        converter=scalar("reduction_time_per_byte", minimum=0.0), default=0.0
    )
    hop_latency: Float[Array, ""] = eqx.field(converter=scalar("hop_latency", minimum=0.0), default=0.0)
    radix: Int[Array, ""] = eqx.field(converter=_radix, default=DEFAULT_RADIX)


class Counts(eqx.Module):
    """What an algorithm does, in rounds and in multiples of the message size.

    Attributes:
        rounds: messages one after the other on the longest path.
        sent: what a rank sends, the mean over the ranks (so energy and traffic are right); ranks of a tree
            differ.
        carried: what the links on the longest path carry one after the other; at least what the busiest link
            carries.
        combined: what is combined one after the other.
        hops: switch hops on the longest path, instead of rounds, for in-network algorithms.
    """

    rounds: ArrayLike
    sent: ArrayLike
    carried: ArrayLike
    combined: ArrayLike = 0.0
    hops: ArrayLike = 0.0


class Cost(eqx.Module):
    """What a collective costs.

    Attributes:
        rounds: messages (or switch hops) one after the other.
        bytes_per_rank: what a rank sends, the mean over the ranks.
        latency_time: seconds of latency.
        bandwidth_time: seconds that bytes take on the links of the longest path.
        reduction_time: seconds of combining.
    """

    rounds: Float[Array, ""]
    bytes_per_rank: Float[Array, ""]
    latency_time: Float[Array, ""]
    bandwidth_time: Float[Array, ""]
    reduction_time: Float[Array, ""]

    @property
    def time(self) -> Float[Array, ""]:
        """Seconds in all."""
        return self.latency_time + self.bandwidth_time + self.reduction_time


def total(costs: Iterable[Cost]) -> Cost:
    """The cost of one thing after the other; of nothing, zero."""
    zero = jnp.zeros((), jnp.result_type(float))
    sums = [zero] * 5
    for cost in costs:
        parts = (
            cost.rounds,
            cost.bytes_per_rank,
            cost.latency_time,
            cost.bandwidth_time,
            cost.reduction_time,
        )
        sums = [before + part for before, part in zip(sums, parts, strict=True)]
    return Cost(*sums)
