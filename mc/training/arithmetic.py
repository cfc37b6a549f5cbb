"""Arithmetic that takes Python floats, NumPy arrays and traced JAX values alike, and stays with what it gets.

Most of a step's time is sums and products, which need nothing. A maximum does: Python's is fastest for floats by far, and
only JAX's can be traced.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# A float, an array of floats, or a traced value.
Number = Any


def maximum(first: Number, second: Number) -> Number:
    """The larger of two numbers, elementwise."""
    if isinstance(first, float | int) and isinstance(second, float | int):
        return first if first >= second else second
    if isinstance(first, jax.Array) or isinstance(second, jax.Array):
        return jnp.maximum(first, second)
    return np.maximum(first, second)


def minimum(first: Number, second: Number) -> Number:
    """The smaller of two numbers, elementwise."""
    if isinstance(first, float | int) and isinstance(second, float | int):
        return first if first <= second else second
    if isinstance(first, jax.Array) or isinstance(second, jax.Array):
        return jnp.minimum(first, second)
    return np.minimum(first, second)


def positive(number: Number) -> Number:
    """The number, or 0 where it is below."""
    return maximum(number, 0.0)


def largest(numbers: Iterable[Number]) -> Number:
    """The largest of some numbers, elementwise."""
    first, *rest = numbers
    for each in rest:
        first = maximum(first, each)
    return first


def where(condition: Number, yes: Number, no: Number) -> Number:
    """One of two numbers, elementwise."""
    if isinstance(condition, bool | np.bool_):
        return yes if condition else no
    if any(isinstance(each, jax.Array) for each in (condition, yes, no)):
        return jnp.where(condition, yes, no)
    return np.where(condition, yes, no)
