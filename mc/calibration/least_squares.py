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
_STUCK, _STILL_STEPS = 1e6, 3
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
    data_axes: Any = None,
) -> Descent:
    """Descends from every start; traceable.

    Args:
        residuals: of parameters and data; differentiable.
        starts: one row each.
        data: passed on.
        steps: at most so many trials.
        tolerance: a gradient below it, relative to 1 + loss, ends a descent.
        data_axes: as `in_axes` of vmap: 0 where each start has its own, on the leading axis.
    """

    def both(point: Array, own: Any) -> tuple[Array, Array]:
        def twice(at: Array) -> tuple[Array, Array]:
            found = residuals(at, own)
            return found, found

        jacobian, found = jax.jacfwd(twice, has_aux=True)(point)
        return found, jacobian

    evaluate = jax.vmap(both, in_axes=(0, data_axes))
    count, parameters = starts.shape
    rows = jax.eval_shape(evaluate, starts, data)[0].shape[1]
    # The first step, of no length, finds the residuals, so that the program has them in it only once.
    first = _State(
        starts,
        jnp.full((count, rows), jnp.inf),
        jnp.zeros((count, rows, parameters)),
        jnp.full(count, _FIRST),
        jnp.zeros(count, jnp.int32),
        jnp.zeros(count, jnp.int32),
    )

    eye = jnp.eye(parameters)[None]

    def going(state: _State) -> Array:
        steep = _slope(state) > tolerance * (1 + _loss(state))
        return (state.steps <= steps) & (state.still < _STILL_STEPS) & (steep | (state.steps == 0))

    def step(state: _State) -> _State:
        active, began = going(state), state.steps > 0
        known = jnp.where(began[:, None], state.residuals, 0.0)
        normal = jnp.einsum("sri,srj->sij", state.jacobian, state.jacobian)
        gradient = jnp.einsum("sri,sr->si", state.jacobian, known)
        factor = jnp.linalg.cholesky(normal + state.damping[:, None, None] * eye)
        trial = state.point - _solved(factor, gradient)
        residual, slopes = evaluate(trial, data)
        before, after = _loss(state), jnp.sum(residual**2, -1) / 2
        sound = jnp.isfinite(after) & jnp.isfinite(slopes).all((-1, -2))
        taken = active & sound & (after < before)
        tiny = taken & began & (before - after < _STILL * (1 + after))
        # Tiny gains, or none in spite of all damping, several times over: this is as far as it goes.
        stuck = tiny | (~taken & (state.damping >= _STUCK))
        damping = jnp.where(taken, state.damping * _FALL, jnp.minimum(state.damping * _RISE, _MOST))
        return _State(
            jnp.where(taken[:, None], trial, state.point),
            jnp.where(taken[:, None], residual, state.residuals),
            jnp.where(taken[:, None, None], slopes, state.jacobian),
            jnp.where(active & began, damping, state.damping),
            state.steps + active,
            jnp.where(active, jnp.where(stuck, state.still + 1, 0), state.still),
        )

    last = jax.lax.while_loop(lambda state: going(state).any(), step, first)
    normal = jnp.einsum("sri,srj->sij", last.jacobian, last.jacobian)
    return Descent(last.point, _loss(last), _slope(last), last.steps, normal, last.residuals)


def _solved(factor: Array, right: Array) -> Array:
    half = jax.lax.linalg.triangular_solve(factor, right[..., None], left_side=True, lower=True)
    return jax.lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[..., 0]


def _loss(state: _State) -> Array:
    return jnp.sum(state.residuals**2, -1) / 2


def _slope(state: _State) -> Array:
    known = jnp.where(jnp.isfinite(state.residuals), state.residuals, 0.0)
    return jnp.abs(jnp.einsum("sri,sr->si", state.jacobian, known)).max(-1)
