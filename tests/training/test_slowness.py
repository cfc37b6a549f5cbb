"""The slowest rank of a group against closed forms, and against the largest of ranks that are drawn one by one."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from mc.delays import Constant, Exponential, Lognormal
from mc.training import KernelNoise, QuantileTable, RankNoise, fit_curve, tabulate_slowness
from mc.training.slowness import evaluate_curve
from mc.training.tables import odds_of_word
from tests.stats import assert_law, assert_same_law
from tests.training.noises import ALL, PROFILES, SECONDS, SIGMA, SPREAD, table_of_all

WORDS = np.unique(
    np.concatenate(
        [
            np.random.default_rng(7).integers(0, 1 << 32, 4000, dtype=np.uint64),
            2 ** np.arange(32, dtype=np.uint64),
            (1 << 32) - 2 ** np.arange(32, dtype=np.uint64),
            [0],
        ]
    )
)


def odds_of(words):
    """Log-odds of (word + 1/2)/2^32, in double precision."""
    tail = (np.minimum(words, (1 << 32) - 1 - words) + 0.5) / 2.0**32
    size = np.log1p(-tail) - np.log(tail)
    return np.where(words < 1 << 31, -size, size)


RANDOM = np.random.default_rng(17).integers(0, 1 << 32, 20_000, dtype=np.uint64)


def look_up(table, profile, words, row=0):
    row, column = (jnp.full((1, 1), place, jnp.int32) for place in (row, profile))
    return np.asarray(table.look_up(row, column, jnp.asarray(words[None], jnp.uint32)), np.float64)[0]


def quantile_of_largest(profile, odds):
    """Of lognormal factors: where the product of distribution functions has these odds, on a fine grid."""
    x = np.exp(np.linspace(-0.6, 1.0, 400_001))
    log_below = sum(ranks * special.log_ndtr(np.log(x / factor) / SIGMA) for factor, ranks, _ in profile)
    with np.errstate(divide="ignore"):
        found = log_below - np.log(-np.expm1(log_below))
    rising = np.isfinite(found)
    return np.interp(odds, found[rising], x[rising])


def test_odds_keep_both_tails():
    found = np.asarray(odds_of_word(jnp.asarray(WORDS, jnp.uint32)), np.float64)
    np.testing.assert_allclose(found, odds_of(WORDS), rtol=2e-6, atol=3e-7)
    assert np.all(np.diff(found) >= 0)


def test_between_knots_a_table_is_linear():
    odds = np.linspace(-23, 23, 8193)
    table = QuantileTable(jnp.asarray(1 + 0.01 * odds)[None, None])
    np.testing.assert_allclose(look_up(table, 0, WORDS), 1 + 0.01 * odds_of(WORDS), rtol=1e-6)


LARGE = [
    [(1.0, 1, 0)],
    [(1.0, 8, 0)],
    [(1.0, 4096, 0)],
    [(1.0, 7, 0), (1.5, 1, 0)],
    [(1.0, 60, 0), (1.05, 4, 0)],
]


def test_the_slowest_of_lognormal_ranks_has_its_closed_form():
    table = tabulate_slowness(SPREAD, [1e-3, 2e-3], LARGE)
    assert table.times.shape == (2, len(LARGE), 8193)
    np.testing.assert_array_equal(*table.times)
    curve = fit_curve(table)
    assert curve is not None
    for profile, ranks in enumerate(LARGE):
        expected = quantile_of_largest(ranks, odds_of(WORDS))
        np.testing.assert_allclose(look_up(table, profile, WORDS), expected, rtol=1e-5)
        coefficients = curve.of_groups(jnp.full((1, 1), profile, jnp.int32))
        found = evaluate_curve(coefficients, jnp.asarray(WORDS[None], jnp.uint32))
        np.testing.assert_allclose(found[0], expected, rtol=2e-5)


def test_persistent_factors_alone_are_the_largest():
    table = tabulate_slowness(RankNoise(), [1e-3], [[(1.0, 3, 0)], [(1.0, 2, 0), (1.5, 1, 0)]])
    np.testing.assert_allclose(look_up(table, 0, WORDS), 1.0, rtol=1e-6)
    np.testing.assert_allclose(look_up(table, 1, WORDS), 1.5, rtol=1e-6)


def test_pauses_alone_come_with_their_probability():
    noise = RankNoise(pause=Constant(5e-3), pause_probability=0.1)
    table = tabulate_slowness(noise, [1e-3], [[(1.0, 8, 0)]])
    found = look_up(table, 0, WORDS)
    none = np.log(0.9**8) - np.log1p(-(0.9**8))
    # But for a cell of the table.
    apart = np.abs(odds_of(WORDS) - none) > 0.04
    expected = np.where(odds_of(WORDS) > none, 6.0, 1.0)
    np.testing.assert_allclose(found[apart], expected[apart], rtol=1e-5)


@pytest.mark.parametrize("profile", [0, 1])
def test_all_noise_is_that_of_the_largest_of_ranks(profile):
    rng = np.random.default_rng(11)
    count = 200_000
    factor = np.concatenate([[each] * ranks for each, ranks, _ in PROFILES[profile]])
    shape = (count, factor.size)
    took = factor * rng.lognormal(0, SIGMA, shape) + rng.exponential(3e-5, shape) / SECONDS
    took = took + 5.0 * (rng.random(shape) < ALL.pause_probability)
    words = rng.integers(0, 1 << 32, count, dtype=np.uint64)
    assert_same_law(look_up(table_of_all(), profile, words), took.max(axis=1))


def test_stretches_of_kernels_add_up():
    """Of one rank, k stretches of C/k with exponential delays take C and an Erlang time."""
    noise = RankNoise(kernels=KernelNoise(jitter=Exponential(1e-5)))
    table = tabulate_slowness(noise, [SECONDS, SECONDS], [[(1.0, 1, 0)], [(2.0, 1, 0)]], stretches=[1, 6])
    for row, stretches in enumerate((1, 6)):
        # A rank that computes twice as long is as late.
        for profile, factor in enumerate((1.0, 2.0)):
            late = (look_up(table, profile, RANDOM, row) - factor) * SECONDS
            assert_law(late, stats.gamma(stretches, scale=1e-5).cdf)


def test_each_stretch_waits_for_its_slowest_rank():
    stretches, count = 5, 50_000
    noise = RankNoise(kernels=KernelNoise(Lognormal(1.0, 0.1), Exponential(1e-5)))
    profile = [(1.0, 5, 0), (1.2, 2, 1)]
    table = tabulate_slowness(
        noise, [SECONDS], [profile], stretches=[stretches], ratios=np.array([[1.0, 0.9]])
    )
    rng = np.random.default_rng(13)
    factor = np.array([1.0] * 5 + [1.2 * 0.9] * 2)
    shape = (count, stretches, 7)
    took = factor * rng.lognormal(0, 0.1, shape) / stretches + rng.exponential(1e-5, shape) / SECONDS
    assert_same_law(look_up(table, 0, RANDOM), took.max(axis=2).sum(axis=1))


def test_ranks_on_several_kinds_of_chips_are_the_slowest_of_all():
    table = tabulate_slowness(
        SPREAD, [1e-3, 2e-3], [[(1.0, 3, 0), (1.5, 1, 1)]], ratios=np.array([[1.0, 0.5], [0.8, 1.0]])
    )
    for row, told in enumerate(([(1.0, 3, 0), (0.75, 1, 0)], [(0.8, 3, 0), (1.5, 1, 0)])):
        np.testing.assert_allclose(
            look_up(table, 0, WORDS, row), quantile_of_largest(told, odds_of(WORDS)), rtol=2e-5
        )


def test_a_group_of_one_factor_beside_one_that_varies_has_a_curve():
    """Its logarithm 0 is a polynomial without higher powers."""
    odds = np.linspace(-23, 23, 8193)
    sound = -special.ndtri_exp(-np.logaddexp(0.0, odds))
    curve = fit_curve(QuantileTable(jnp.asarray(np.exp([0 * sound, 0.02 * sound]))[None]))
    assert curve is not None
    for profile, sigma in enumerate((0.0, 0.02)):
        coefficients = curve.of_groups(jnp.full((1, 1), profile))
        found = evaluate_curve(coefficients, jnp.asarray(RANDOM[None, :100], jnp.uint32))
        wanted = np.exp(sigma * special.ndtri((RANDOM[:100] + 0.5) / 2.0**32))
        np.testing.assert_allclose(found[0], wanted, rtol=2e-5)
