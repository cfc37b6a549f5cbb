"""Checks of parameters as they enter a delay, with messages that say what would do.

A parameter is checked where its value is known (at construction outside `jit`); traced values pass, since the config layer has
checked them before.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mc.errors import InputError


class ParameterError(InputError):
    """A parameter lies outside the range its law allows."""


def scalar(name: str, *, minimum: float = -np.inf, open_minimum: bool = False) -> Callable[[Any], Float[Array, "..."]]:
    """An Equinox field converter: to a float array, finite and ≥ `minimum` (> with `open_minimum`) where the value is known.

    Leading axes are allowed: they make a batch of delays.
    """
    relation = ">" if open_minimum else ">="

    def convert(value: Any) -> Float[Array, "..."]:
        if not is_known(value):
            return value
        array = jnp.asarray(value, jnp.result_type(float))
        host = np.asarray(value)
        if np.isnan(host).any() or np.isinf(host).any():
            raise ParameterError(f"{name}: expected a finite number; got {host}")
        if (host <= minimum).any() if open_minimum else (host < minimum).any():
            raise ParameterError(f"{name}: expected a number {relation} {minimum:g}; got {host}")
        return array

    return convert


def is_known(value: Any) -> bool:
    """Whether `value` is a number that can be looked at now: neither traced nor a placeholder that a transformation put there."""
    return isinstance(value, (int, float, np.ndarray, np.generic, jax.Array)) and not isinstance(value, jax.core.Tracer)
