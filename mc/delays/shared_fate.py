"""Shared fate: ranks behind one link are slow together.

A group of g ranks shares a link whose state k (with probability π_k) multiplies all their times by c_k and
adds d_k to them. Given the state the ranks are independent, so the slowest of the group has S_group = Σ
π_k·(1 − (1 − S_k)^g), and the slowest of G groups 1 − (1 − S_group)^G. A common factor and a common delay
commute with the maximum, so the whole is a mixture of scaled copies of the slowest of g, and it nests: the
law of a group is again a delay.
"""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.delays.affine import Scaled, Shifted
from mc.delays.base import AbstractDelay
from mc.delays.checks import ParameterError, scalar
from mc.delays.mixture import Mixture
from mc.delays.slowest import Slowest


def shared_fate(
    rank: AbstractDelay,
    *,
    group: ArrayLike,
    groups: ArrayLike,
    probabilities: Float[Array, " states"],
    slowdowns: Float[Array, " states"],
    delays: Float[Array, " states"] | None = None,
) -> Slowest:
    """The slowest of `groups` × `group` ranks, each group with a random state of its own.

    Args:
        rank: one rank's time with the link idle.
        group: ranks that share a state (≥ 1).
        groups: how many such groups wait for each other.
        probabilities: of the states, adding up to 1.
        slowdowns: factor on a rank's time in each state.
        delays: seconds added in each state; none by default.

    Returns:
        A delay; pass it as `rank` to the next tier out to nest.

    Raises:
        ParameterError: lists of states that differ in length.
    """
    probabilities = scalar("probability", minimum=0.0)(jnp.asarray(probabilities))
    slowdowns = scalar("slowdown", minimum=0.0, open_minimum=True)(jnp.asarray(slowdowns))
    delays = (
        jnp.zeros_like(slowdowns) if delays is None else scalar("delay", minimum=0.0)(jnp.asarray(delays))
    )
    if not probabilities.shape == slowdowns.shape == delays.shape:
        raise ParameterError(
            "expected as many probabilities, slowdowns and delays as there are states; "
            f"got {probabilities.shape}, {slowdowns.shape}, {delays.shape}"
        )
    together = Slowest(rank, group)
    states = tuple(Shifted(Scaled(together, slowdowns[k]), delays[k]) for k in range(slowdowns.shape[0]))
    return Slowest(Mixture(probabilities, states), groups)
