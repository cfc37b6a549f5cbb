"""Inverting a log-survival function that has no inverse in closed form.

**Value.** The bit patterns of non-negative floats are ordered like the floats, so bisection on the *integers*
that represent them visits every magnitude alike: 31 halvings find the quantile to the last bit of a float32,
from 10⁻⁴⁵ s to 10³⁸ s, with no bracket, no starting point and no failure. (63 halvings in float64.)

**Derivative.** The implicit one, at any parameter θ of the law and at the level ℓ = log S:

    dt/dθ = −(∂ log S/∂θ) / (∂ log S/∂t),      dt/dℓ = 1 / (∂ log S/∂t).

It depends on t alone, not on how t was found, so a table lookup (`mc.delays.table`) is differentiated in the
same way.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.base import AbstractDelay


def solve_quantile(delay: AbstractDelay, log_survival: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The quantile of `delay` at `log_survival` by bisection, differentiable in both."""
    level = jnp.asarray(log_survival, jnp.result_type(float))
    frozen = jax.lax.stop_gradient((_arrays(delay), level))
    return attach_derivative(bisect_bits(eqx.combine(frozen[0], _rest(delay)), frozen[1]), delay, level)


def bisect_bits(delay: AbstractDelay, level: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The smallest float t with log S(t) ≤ `level`. Not differentiable."""
    real = level.dtype
    bits, integer = (63, jnp.int64) if real == jnp.float64 else (31, jnp.int32)
    infinity = jax.lax.bitcast_convert_type(jnp.asarray(jnp.inf, real), integer)

    def halve(_, bracket):
        low, high = bracket  # S > level at low (or low = 0); S ≤ level at high
        middle = low + (high - low) // 2
        late = delay.log_survival(jax.lax.bitcast_convert_type(middle, real)) > level
        return jnp.where(late, middle, low), jnp.where(late, high, middle)

    start = jnp.zeros(level.shape, integer), jnp.full(level.shape, infinity)
    _, high = jax.lax.fori_loop(0, bits, halve, start)
    return jax.lax.bitcast_convert_type(high, real)


@eqx.filter_custom_jvp
def attach_derivative(
    t: Float[Array, "*shape"], delay: AbstractDelay, level: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """`t` itself, carrying the implicit derivative of the quantile of `delay` at `level`.

    Where the density vanishes in floating point (beyond the support, in a gap between atoms) the derivative
    is 0.
    """
    del delay, level
    return t


@attach_derivative.def_jvp
def _attach_derivative_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    t, delay, _ = primals
    _, d_delay, d_level = tangents
    inside = jnp.isfinite(t)
    where = jnp.where(inside, t, 1.0)
    _, slope = jax.jvp(delay.log_survival, (where,), (jnp.ones_like(where),))
    has_density = inside & (slope < 0) & jnp.isfinite(slope)
    inverse_slope = jnp.where(has_density, 1 / jnp.where(has_density, slope, 1.0), 0.0)
    change = jnp.zeros_like(where) if d_level is None else jnp.where(has_density, d_level, 0.0)
    if _any_tangent(d_delay):
        _, d_log_s = eqx.filter_jvp(lambda law: law.log_survival(where), (delay,), (d_delay,))
        change = change - jnp.where(has_density, d_log_s, 0.0)
    return t, change * inverse_slope


@eqx.filter_custom_jvp
def attach_parameters(
    log_survival: Float[Array, "*shape"], delay: AbstractDelay, t: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """`log_survival` itself, with its own derivative in time, carrying that of `delay` at `t` in the parameters."""
    del delay, t
    return log_survival


@attach_parameters.def_jvp
def _attach_parameters_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    log_survival, delay, t = primals
    d_log_survival, d_delay, _ = tangents
    change = jnp.zeros_like(log_survival) if d_log_survival is None else d_log_survival
    if _any_tangent(d_delay):
        _, d_parameters = eqx.filter_jvp(lambda law: law.log_survival(t), (delay,), (d_delay,))
        change = change + d_parameters
    return log_survival, change


def _any_tangent(tangents: Any) -> bool:
    return any(leaf is not None for leaf in jax.tree.leaves(tangents, is_leaf=lambda leaf: leaf is None))


def _arrays(tree: Any) -> Any:
    return eqx.filter(tree, eqx.is_array)


def _rest(tree: Any) -> Any:
    return eqx.filter(tree, eqx.is_array, inverse=True)
