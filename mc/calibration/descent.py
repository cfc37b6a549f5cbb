"""Descent of a loss that is no sum of squares: Adam, then L-BFGS, from many starts at once.

Adam (Kingma, Ba 2015) finds the valley from afar, L-BFGS with Optax's zoom line search its bottom. For least
squares `least_squares.py` takes a tenth of the steps; this is for likelihoods.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


class Bottom(NamedTuple):
    """Where descents ended; each field with a leading axis of starts.

    Attributes:
        point: the parameters.
        loss: there.
        gradient: the largest entry of its gradient, in magnitude.
        hessian: the matrix of second derivatives.
    """

    point: Float[Array, "starts parameters"]
    loss: Float[Array, " starts"]
    gradient: Float[Array, " starts"]
    hessian: Float[Array, "starts parameters parameters"]


def descend(
    loss: Callable[[Float[Array, " parameters"], Any], Float[Array, ""]],
    starts: Float[Array, "starts parameters"],
    data: Any,
    *,
    first: int = 150,
    second: int = 40,
    rate: float = 0.05,
    data_axes: Any = None,
) -> Bottom:
    """Descends from every start; traceable.

    Args:
        loss: of parameters and data.
        starts: one row each.
        data: passed on.
        first: steps of Adam.
        second: steps of L-BFGS.
        rate: Adam's, in the units of the parameters.
        data_axes: as `in_axes` of vmap: 0 where each start has its own, on the leading axis.
    """

    def one(start: Array, own: Any) -> Bottom:
        def value(point: Array) -> Array:
            return loss(point, own)

        adam, lbfgs = optax.adam(rate), optax.lbfgs()

        def coarse(carry: Any, _: None) -> Any:
            point, state = carry
            updates, state = adam.update(jax.grad(value)(point), state)
            return (point + updates, state), None

        (point, _), _ = jax.lax.scan(coarse, (start, adam.init(start)), None, length=first)

        def fine(carry: Any, _: None) -> Any:
            point, state = carry
            height, slope = optax.value_and_grad_from_state(value)(point, state=state)
            updates, state = lbfgs.update(slope, state, point, value=height, grad=slope, value_fn=value)
            moved = point + updates
            return (jnp.where(jnp.isfinite(moved).all(), moved, point), state), None

        (point, _), _ = jax.lax.scan(fine, (point, lbfgs.init(point)), None, length=second)
        height, slope = jax.value_and_grad(value)(point)
        return Bottom(point, height, jnp.abs(slope).max(), jax.hessian(value)(point))

    return jax.vmap(one, in_axes=(0, data_axes))(starts, data)
