"""Whole-number functions against Python's integers, in full near every power."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.collectives.integers import ceil_log, floor_power_of_two, ones_below, tree_shape

LARGEST = 2**24  # float32 counts no further


def exact_tree(n: int, base: int) -> tuple[int, int]:
    depth, last = 0, 1
    power = 1
    while power < n:
        last = -(-n // power)
        power *= base
        depth += 1
    return depth, last


def near_powers(base: int, largest: int = LARGEST) -> np.ndarray:
    found, power = set(), 1
    while power <= largest:
        found.update(power + offset for offset in (-1, 0, 1))
        power *= base
    return np.asarray(sorted(n for n in found if 1 <= n <= largest))


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_tree_shape_near_every_power(dtype):
    shape = jax.jit(jax.vmap(tree_shape))
    for base in [*range(2, 66), 100, 127, 128, 1000, 4096, 4097, 2**20, 2**24]:
        ranks = near_powers(base)
        # One shape for all bases, so that one compilation serves them.
        padded = np.resize(ranks, 128).astype(dtype)
        depth, last = shape(padded, np.full(128, base, np.int32))
        wanted = [exact_tree(int(n), base) for n in padded]
        np.testing.assert_array_equal(np.stack([depth, last], axis=1), wanted, err_msg=f"base {base}")


@pytest.mark.parametrize("base", [2, 3, 4, 5, 7, 10, 16, 64])
def test_ceil_log_of_every_small_number(base):
    ranks = np.arange(1, 5001)
    np.testing.assert_array_equal(
        jax.vmap(ceil_log, (0, None))(ranks, base), [exact_tree(int(n), base)[0] for n in ranks]
    )


@pytest.mark.parametrize("n", [2**30, 2**31 - 1])
def test_ceil_log_of_the_largest_numbers(n):
    assert int(ceil_log(n, 2)) == (n - 1).bit_length()
    assert int(ceil_log(n, 2**31 - 1)) == 1


def test_floor_power_of_two_near_every_power():
    ranks = near_powers(2)
    exponent, power = jax.jit(jax.vmap(floor_power_of_two))(ranks.astype(np.float32))
    np.testing.assert_array_equal(exponent, [int(n).bit_length() - 1 for n in ranks])
    np.testing.assert_array_equal(power, [1 << (int(n).bit_length() - 1) for n in ranks])


def test_floor_power_of_two_in_double_precision():
    with jax.enable_x64(True):
        ranks = near_powers(2, 2**30)
        _, power = jax.jit(jax.vmap(floor_power_of_two))(ranks)
        np.testing.assert_array_equal(power, [1 << (int(n).bit_length() - 1) for n in ranks])


def test_ones_below():
    ones = np.cumsum([0, *(int(i).bit_count() for i in range(4096))])
    np.testing.assert_array_equal(jax.vmap(ones_below)(np.arange(1, 4097)), ones[1:])
    # Below 2^k, half of k·2^k binary digits are ones.
    np.testing.assert_allclose(ones_below(2**24), 12 * 2**24, rtol=1e-7)


@pytest.mark.parametrize(
    "function", [lambda n: ceil_log(n, 3), ones_below, lambda n: floor_power_of_two(n)[1]]
)
def test_steps_have_a_derivative_of_zero(function):
    gradient = jax.grad(lambda n: jnp.asarray(function(n), float) * 2.0)
    for n in (1.0, 2.0, 9.0, 10.0):
        assert float(gradient(n)) == 0.0
