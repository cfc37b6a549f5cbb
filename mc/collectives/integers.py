"""Whole-number arithmetic that compiled formulas need, exact and traceable.

Logarithms in floating point miss: log(125)/log(5) is 3.0000000000000004, and its ceiling 4. Counting is
exact. All of it happens in int32, which also makes derivatives in the number of ranks what they should be
here: zero.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from mc.delays.checks import is_known

# int32 numbers have at most 31 digits in base 2, the smallest base.
_MOST_DIGITS = 31


def to_integer(value: ArrayLike) -> Int[Array, ""]:
    """The nearest int32; exact for every float32 up to 2²⁴ that is a whole number."""
    array = jnp.asarray(value)
    return (jnp.round(array) if jnp.issubdtype(array.dtype, jnp.floating) else array).astype(jnp.int32)


def tree_shape(n: ArrayLike, base: ArrayLike) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The depth of a tree of n ranks that combines `base` at a time, and how many its last round combines.

    Each round leaves ⌈n/base⌉ of n, and ⌈⌈n/k⌉/k⌉ = ⌈n/k²⌉: repeating it until one is left counts
    ⌈log_k n⌉ rounds.

    Args:
        n: how many ranks, from 1 to 2³¹ − 1.
        base: at least 2.

    Returns:
        (⌈log_base n⌉, ⌈n/base^(depth−1)⌉); (0, 1) for one rank.
    """
    if is_known(n) and is_known(base) and np.ndim(n) == np.ndim(base) == 0:
        # What is known is counted at once: a loop of arrays takes a thousand times as long where nothing is compiled.
        left, divisor = (int(np.rint(np.asarray(each))) for each in (n, base))
        depth, last = 0, 1
        while left > 1:
            left, depth, last = (left - 1) // divisor + 1, depth + 1, left
        return jnp.int32(depth), jnp.int32(last)
    return _tree_shape(n, base)


@jax.jit
def _tree_shape(n: ArrayLike, base: ArrayLike) -> tuple[Int[Array, ""], Int[Array, ""]]:
    divisor = to_integer(base)

    def combine(_, state):
        left, depth, last = state
        more = left > 1
        return (left - 1) // divisor + 1, depth + more, jnp.where(more, left, last)

    zero, one = jnp.zeros((), jnp.int32), jnp.ones((), jnp.int32)
    _, depth, last = jax.lax.fori_loop(0, _MOST_DIGITS, combine, (to_integer(n), zero, one))
    return depth, last


def ceil_log(n: ArrayLike, base: ArrayLike) -> Int[Array, ""]:
    """⌈log_base n⌉, exactly, for n from 1 to 2³¹ − 1 and base from 2."""
    return tree_shape(n, base)[0]


def floor_power_of_two(n: ArrayLike) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest power of 2 that is not above n, for n from 1 to 2³¹ − 1: its exponent and itself.

    Shifted, not computed by `exp2`: compiled, that gives 255.99999999999997 for 2⁸ on some machines.
    """
    exponent = 31 - jax.lax.clz(to_integer(n))
    power = jnp.left_shift(jnp.int32(1), exponent)
    dtype = jnp.result_type(float)
    return exponent.astype(dtype), power.astype(dtype)


@jax.jit
def ones_below(n: ArrayLike) -> Float[Array, ""]:
    """How many ones the binary numerals of 0, 1, …, n − 1 have together.

    Bit j is set in 2^j of every 2^(j+1) numbers, and in those beyond 2^j of the last, incomplete block.

    Args:
        n: from 1 to 2³⁰.
    """
    whole = to_integer(n)
    bits = jnp.arange(30, dtype=jnp.int32)
    half = jnp.left_shift(jnp.int32(1), bits)
    blocks = jnp.right_shift(whole, bits + 1)
    rest = whole - jnp.left_shift(blocks, bits + 1)
    ones = blocks * half + jnp.maximum(rest - half, 0)
    return jnp.sum(ones.astype(jnp.result_type(float)))
