"""Nonlinear least squares from many starts at once: Levenberg–Marquardt, batched over starts or data sets.

A step solves (JᵀJ + λ·I)·δ = −Jᵀr (Marquardt 1963); it is taken if it lowers the sum of squares, and then λ
falls, else λ grows. Parameters are in units of their priors' standard deviations and the priors are among the
residuals, so JᵀJ ≥ I, the scaling by I is the natural one, and a solution exists whatever the data say.

Residuals and their Jacobian are evaluated at one place of the program, so that it compiles in seconds where the
general solvers of optimistix take most of a minute for the same curves.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

_FIRST, _FALL, _RISE, _MOST = 1e-2, 0.25, 6.0, 1e12
# Of the loss, per step; below that rounding decides.
_STILL = 1e-9


class Descent(NamedTuple):
    """Where descents ended; each field with a leading axis of starts.

    Attributes:
        point: the parameters.
        loss: half of the sum of squares.
        gradient: the largest entry of its gradient, in magnitude.
        steps: how many were tried.
        normal: JᵀJ there, the Gauss–Newton matrix.
        residuals: there.
    """

    point: Float[Array, "starts parameters"]
    loss: Float[Array, " starts"]
    gradient: Float[Array, " starts"]
    steps: Int[Array, " starts"]
    normal: Float[Array, "starts parameters parameters"]
    residuals: Float[Array, "starts residuals"]


class _State(NamedTuple):
    point: Array
    residuals: Array
    jacobian: Array
    damping: Array
    steps: Array
    still: Array


def least_squares(
    residuals: Callable[[Float[Array, " parameters"], Any], Float[Array, " residuals"]],
    starts: Float[Array, "starts parameters"],
    data: Any,
    *,
    steps: int,
    tolerance: float = 1e-4,
    data_axis: int | None = None,
) -> Descent:
    """Descends from every start; traceable.

    Args:
        residuals: of parameters and data; differentiable.
        starts: one row each.
        data: passed on.
        steps: at most so many trials.
        tolerance: a gradient below it, relative to 1 + loss, ends a descent.
        data_axis: 0 where each start has its own data, on the leading axis of every array of it.
    """

    def both(point: Array, own: Any) -> tuple[Array, Array]:
        def twice(at: Array) -> tuple[Array, Array]:
            found = residuals(at, own)
            return found, found

        jacobian, found = jax.jacfwd(twice, has_aux=True)(point)
        return found, jacobian

    evaluate = jax.vmap(both, in_axes=(0, data_axis))
    found, jacobian = evaluate(starts, data)
    count = jnp.zeros(starts.shape[0], jnp.int32)
    first = _State(starts, found, jacobian, jnp.full(starts.shape[0], _FIRST), count, count)

    def going(state: _State) -> Array:
        return (state.steps < steps) & (state.still < 3) & (_slope(state) > tolerance * (1 + _loss(state)))

    def step(state: _State) -> _State:
        active = going(state)
        eye = jnp.eye(starts.shape[1])
        normal = jnp.einsum("sri,srj->sij", state.jacobian, state.jacobian)
        gradient = jnp.einsum("sri,sr->si", state.jacobian, state.residuals)
        damped = normal + state.damping[:, None, None] * eye
        trial = state.point - jnp.linalg.solve(damped, gradient[..., None])[..., 0]
        residual, slopes = evaluate(trial, data)
        gain = _loss(state) - jnp.sum(residual**2, -1) / 2
        sound = jnp.isfinite(gain) & jnp.isfinite(slopes).all((-1, -2))
        taken = active & sound & (gain > 0)
        small = jnp.abs(jnp.where(sound, gain, jnp.inf)) < _STILL * (1 + _loss(state))
        damping = jnp.where(taken, state.damping * _FALL, jnp.minimum(state.damping * _RISE, _MOST))
        return _State(
            jnp.where(taken[:, None], trial, state.point),
            jnp.where(taken[:, None], residual, state.residuals),
            jnp.where(taken[:, None, None], slopes, state.jacobian),
            jnp.where(active, damping, state.damping),
            state.steps + active,
            # Rejected or tiny, several times over, with ever more damping: this is as far as it goes.
            jnp.where(
                active,
                jnp.where(taken & ~small, 0, state.still + (small | (state.damping >= 1e6))),
                state.still,
            ),
        )

    last = jax.lax.while_loop(lambda state: going(state).any(), step, first)
    normal = jnp.einsum("sri,srj->sij", last.jacobian, last.jacobian)
    return Descent(last.point, _loss(last), _slope(last), last.steps, normal, last.residuals)


def _loss(state: _State) -> Array:
    return jnp.sum(state.residuals**2, -1) / 2


def _slope(state: _State) -> Array:
    return jnp.abs(jnp.einsum("sri,sr->si", state.jacobian, state.residuals)).max(-1)
