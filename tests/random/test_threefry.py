"""The generator against Random123's published known answers and against JAX's own bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.random import draw_levels, key_words, levels_from_words, stream, threefry2x32
from tests.stats import ALPHA, assert_law

# kat_vectors of Random123 1.14, threefry2x32, 20 rounds: counter, key, answer.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer):
    words = threefry2x32(tuple(jnp.uint32(k) for k in key), *(jnp.uint32(c) for c in counter))
    assert tuple(int(w) for w in words) == answer


def test_same_function_as_jax():
    key = jax.random.key(7)
    block = np.asarray(jax.random.key_data(jax.random.fold_in(key, 12345)))
    # fold_in is one threefry block of the counter (0, data).
    ours = threefry2x32(key_words(key), jnp.uint32(0), jnp.uint32(12345))
    assert [int(w) for w in ours] == [int(w) for w in block]


def test_refuses_another_generator():
    with pytest.raises(ValueError, match="expected one threefry2x32 key"):
        key_words(jax.random.key(0, impl="rbg"))


def test_streams_differ_and_repeat():
    key = jax.random.key(0)
    first, again, other = (draw_levels(stream(key, name), (4,)) for name in ("compute", "compute", "link"))
    assert bool((first == again).all())
    assert not bool((first == other).any())


def test_levels_are_uniform_in_both_tails():
    levels = np.asarray(draw_levels(jax.random.key(1), (1_000_000,)), np.float64)
    assert_law(-levels, stats.expon.cdf)
    # Also from the other end: −log F is exponential too, and resolves the lower tail.
    assert_law(-np.log(-np.expm1(levels)), stats.expon.cdf)


def test_levels_do_not_repeat_and_words_are_independent():
    index = jnp.arange(1 << 20, dtype=jnp.uint32)
    high, low = threefry2x32(key_words(jax.random.key(2)), jnp.zeros_like(index), index)
    for words in (np.asarray(high), np.asarray(low)):
        for shift in (0, 8, 16, 24):
            counts = np.bincount((words >> shift) & 0xFF, minlength=256)
            assert stats.chisquare(counts).pvalue > ALPHA
    assert abs(np.corrcoef(np.asarray(high)[:-1], np.asarray(high)[1:])[0, 1]) < 7e-3  # 7 standard errors
    assert abs(np.corrcoef(np.asarray(high), np.asarray(low))[0, 1]) < 7e-3


@pytest.mark.parametrize(
    ("high", "low", "uniform"),
    [
        (0, 0, 0.5 * 2.0**-64),
        (0, 1 << 20, 2.0**-44),
        (1, 0, 2.0**-32),
        ((1 << 31) - 1, 0xFFFFFFFF, 0.5),
        (1 << 31, 0, 0.5),
    ],
)
def test_level_values(high, low, uniform):
    assert float(levels_from_words(jnp.uint32(high), jnp.uint32(low))) == pytest.approx(
        np.log(uniform), rel=2e-7
    )


def test_upper_end_keeps_relative_precision():
    top = levels_from_words(jnp.uint32(0xFFFFFFFF), jnp.uint32(0xFFFFFFFF))
    assert float(top) == pytest.approx(-0.5 * 2.0**-64, rel=1e-6)
