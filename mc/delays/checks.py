"""Checks of parameters as they enter a delay, with messages that say what would do.

A parameter is checked where its value is known (at construction outside `jit`); traced values pass, since the
config layer has checked them before.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from mc.errors import InputError


class ParameterError(InputError):
    """A parameter lies outside the range its law allows."""


def scalar(
    name: str, *, minimum: float = -np.inf, open_minimum: bool = False
) -> Callable[[Any], Float[Array, "..."]]:
    """An Equinox field converter: to a float array, finite and ≥ `minimum` (> with `open_minimum`) where known.

    Leading axes are allowed: they make a batch of delays. What counts is the number as the array holds it:
    10⁻⁵⁰ is 0 in 32 bits.
    """
    relation = ">" if open_minimum else ">="

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            parts = [jnp.asarray(part, jnp.result_type(float)) for part in value]
            value = jnp.stack(parts) if parts else jnp.zeros(0)
        if not is_known(value):
            return value
        real = jnp.result_type(float)
        with np.errstate(over="ignore"):
            host = np.asarray(value).astype(real)
        if not np.isfinite(host).all():
            raise ParameterError(f"{name}: expected a finite number; got {value}")
        if (host <= minimum).any() if open_minimum else (host < minimum).any():
            raise ParameterError(f"{name}: expected a number {relation} {minimum:g}; got {value}")
        return jnp.asarray(value, real)

    return convert


def is_known(value: Any) -> bool:
    """Whether `value` is a number that can be looked at now: neither traced nor a placeholder that a transformation put there."""
    return isinstance(value, (int, float, np.ndarray, np.generic, jax.Array)) and not isinstance(
        value, Tracer
    )


def check_shares(probabilities: Any) -> None:
    """Probabilities (last axis) add up to 1 to 10⁻⁵, where they are known."""
    if is_known(probabilities):
        total = np.asarray(probabilities, np.float64).sum(-1)
        if (np.abs(total - 1) > 1e-5).any():
            raise ParameterError(f"expected probabilities that add up to 1; got {total}")
