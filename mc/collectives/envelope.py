"""The lower envelope: the time of the fastest way, as a curve in the size rather than a choice.

A choice looks at numbers and cannot be compiled; the least of all candidates' times can, and be
differentiated in every number of the cluster, though its slope jumps where the winner changes. For fitting
there is a smooth minimum, `soft_minimum`: with temperature τ and k candidates it lies between the minimum
times k^(−τ) and the minimum, since the sum it takes has a largest term and k of them at most.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.candidates import candidates
from mc.collectives.phases import phases_of
from mc.collectives.stages import AUTO, Stage, number_of
from mc.delays.checks import ParameterError, is_known
from mc.fabric import Cluster, Ranks


def soft_minimum(times: Float[Array, "candidates ..."], temperature: ArrayLike) -> Float[Array, "..."]:
    """A smooth minimum of positive times over their first axis: (Σ t^(−1/τ))^(−τ).

    Scaling all times scales it. Its derivative in a time is that of a softmin: weights that add up to
    (result/minimum), almost all on the fastest for a small τ.

    Args:
        times: seconds, above 0.
        temperature: τ > 0, relative: at 0.05 what is 10 % slower than the fastest still counts with a weight
            of e^(−2).

    Raises:
        ParameterError: the temperature is known and not above 0.
    """
    if is_known(temperature) and not np.asarray(temperature) > 0:
        raise ParameterError(f"temperature: expected a number > 0; got {temperature}")
    tau = jnp.asarray(temperature, jnp.result_type(float))
    return jnp.exp(-tau * jax.nn.logsumexp(-jnp.log(times) / tau, axis=0))


def envelope(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: Float[ArrayLike, "..."],
    algorithm: str | tuple[str, ...] = AUTO,
    *,
    protocol: str = AUTO,
    temperature: ArrayLike | None = None,
) -> Float[Array, "..."]:
    """The time of the fastest way to carry out a collective; traceable in the cluster's numbers and the sizes.

    Args:
        cluster: the cluster.
        collective: such as `all-reduce`.
        ranks: how many consecutive ranks the group has, or its axes.
        size: bytes, any shape; one compiled program serves all of them.
        algorithm: a name, `hierarchical`, several of them, or `auto` for the envelope over all.
        protocol: a name, `none`, or `auto` for the envelope over all.
        temperature: of the smooth minimum; None for the minimum itself.

    Returns:
        Seconds, in the shape of `size`. With a temperature at most the minimum, and at least the minimum
        times k^(−τ), k being the number of candidates (for the hierarchical form times that of its largest
        part).

    Raises:
        InputError: as `stages` does.
    """
    names = (algorithm,) if isinstance(algorithm, str) else algorithm
    found = [candidates(cluster, collective, ranks, name, protocol) for name in names]
    flat = tuple(stages for each in found for stages in each.flat.values())
    slots = tuple(tuple(ways.values()) for each in found for ways in each.slots)
    sizes = jnp.asarray(size, jnp.result_type(float))
    if number_of(ranks) == 1:
        return jnp.zeros_like(sizes)
    times = _envelope(cluster, flat, slots, sizes.reshape(-1), temperature)
    return times.reshape(sizes.shape)


@eqx.filter_jit
def _envelope(
    cluster: Cluster,
    flat: tuple[tuple[Stage, ...], ...],
    slots: tuple[tuple[Stage, ...], ...],
    sizes: Float[Array, " sizes"],
    temperature: ArrayLike | None,
) -> Float[Array, " sizes"]:
    def least(times: Sequence[Float[Array, ""]]) -> Float[Array, ""]:
        each = jnp.stack(list(times))
        return jnp.min(each) if temperature is None else soft_minimum(each, temperature)

    def one(size: Float[Array, ""]) -> Float[Array, ""]:
        def time(stages: tuple[Stage, ...]) -> Float[Array, ""]:
            return sum(
                (each.cost.time for each in phases_of(cluster, stages, size)), jnp.zeros((), size.dtype)
            )

        ways = [time(each) for each in flat]
        if slots:
            parts = [least([time((each,)) for each in ways_of_part]) for ways_of_part in slots]
            ways.append(sum(parts, jnp.zeros((), size.dtype)))
        return least(ways)

    return jax.vmap(one)(sizes)
