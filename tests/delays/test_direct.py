"""The `direct` method: its draws depend on key and index alone, its ranks are all there, its memory is bounded."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import (
    Constant,
    Exponential,
    Lognormal,
    Mixture,
    Scaled,
    Shifted,
    Slowest,
    SlowestOf,
    direct,
    draw,
    with_pauses,
)
from mc.random import levels_from_words, stream, threefry2x32
from tests.delays import oracle
from tests.delays.laws import LAWS
from tests.stats import assert_fraction, assert_law, assert_same_law

_DRAW = eqx.filter_jit(draw)


@pytest.mark.parametrize("method", ["exact", "direct", "grid"])
@pytest.mark.parametrize("name", ["exponential", "different ranks"])
def test_a_draw_depends_on_key_and_index_alone(name, method, key):
    """The first 100 of 1,500, across two blocks."""
    law = LAWS[name].make()
    few, many = _DRAW(law, key, 100, method), _DRAW(law, key, 1500, method)
    np.testing.assert_allclose(
        few, many[:100], rtol=1e-6
    )  # compiled for another length, the last bit may differ
    assert len(np.unique(np.asarray(_DRAW(LAWS["exponential"].make(), key, 1500, method)))) > 1490


@pytest.mark.parametrize("method", ["exact", "direct", "grid"])
def test_no_draws_and_one(method, key):
    assert draw(Exponential(1e-5), key, 0, method).shape == (0,)
    assert draw(Slowest(Exponential(1e-5), 5), key, 1, method).shape == (1,)


def test_brute_force_over_the_same_words(key):
    """Identical ranks: pick the deepest word, then transform, equals transform each rank, then take the latest."""
    ranks, steps = 37, 50
    law = Lognormal(1e-4, 0.3)
    found = draw(Slowest(law, ranks), key, steps, "direct")
    high, low = (jax.random.key_data(key)[i] for i in range(2))
    step, pair = np.meshgrid(
        np.arange(steps, dtype=np.uint32), np.arange((ranks + 1) // 2, dtype=np.uint32), indexing="ij"
    )
    words = np.stack(threefry2x32((high, low), jnp.asarray(step), jnp.asarray(pair)), axis=-1).reshape(
        steps, -1
    )[:, :ranks]
    every = law.quantile(levels_from_words(jnp.asarray(words), jnp.zeros_like(words)))
    np.testing.assert_allclose(found, np.max(every, axis=1), rtol=1e-5)


@pytest.mark.parametrize("ranks", [1, 2, 63, 64, 65, 127, 128, 129, 200])
def test_every_rank_is_there_once(ranks, key):
    """A rank too many or too few moves F(t) = F^n; at a level where F^n is ½ the count of draws tells."""
    sample = draw(Slowest(Exponential(1.0), ranks), stream(key, str(ranks)), 20_000, "direct")
    assert_law(sample, lambda t: (-np.expm1(-t)) ** ranks)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 130])
def test_every_different_rank_is_there_once(size, key):
    """Ranks that are fixed but for one: the slowest is the largest of them, wherever it stands."""
    for slow in {0, size // 2, size - 1}:
        values = jnp.full(size, 1e-5).at[slow].set(3e-5)
        np.testing.assert_array_equal(
            draw(SlowestOf(jax.vmap(Constant)(values)), key, 5, "direct"), np.float32(3e-5)
        )


def test_identical_ranks_written_as_different_ones(key):
    identical = Slowest(Exponential(1e-5), 100)
    different = SlowestOf(jax.vmap(Exponential)(jnp.full(100, 1e-5)))
    first, second = jax.random.split(key)
    assert_same_law(draw(identical, first, 20_000, "direct"), draw(different, second, 20_000, "direct"))


def test_composed_ranks_are_independent(key):
    """The slowest of 70 mixtures, and of 4 groups of 5 that share a state."""
    states = with_pauses(Exponential(1e-5), 0.02, Exponential(1e-4))
    law = oracle.mixture([0.98, 0.02], [oracle.from_scipy(stats.expon(scale=s)) for s in (1e-5, 1e-4)])
    assert_law(draw(Slowest(states, 70), key, 20_000, "direct"), oracle.slowest(law, 70).cdf)
    group = Mixture(
        jnp.array([0.7, 0.3]),
        (Slowest(Exponential(1e-5), 5), Shifted(Scaled(Slowest(Exponential(1e-5), 5), 2.0), 1e-5)),
    )
    rank = oracle.from_scipy(stats.expon(scale=1e-5))
    shared = oracle.shared_fate(rank, 5, 4, [0.7, 0.3], [1.0, 2.0], [0.0, 1e-5])
    assert_law(draw(Slowest(group, 4), key, 20_000, "direct"), shared.cdf)


def test_classes_of_composed_ranks(key):
    """Classes with their own counts and their own rare state."""
    probabilities, counts = [0.1, 0.01, 0.3], [3.0, 40.0, 2.0]

    def one(probability, count):
        return Slowest(with_pauses(Exponential(1e-5), probability, Exponential(5e-5)), count)

    law = SlowestOf(jax.vmap(one)(jnp.array(probabilities), jnp.array(counts)))
    rank = [oracle.from_scipy(stats.expon(scale=s)) for s in (1e-5, 5e-5)]
    expected = oracle.slowest_of([oracle.mixture([1 - p, p], rank) for p in probabilities], counts)
    assert_law(draw(law, key, 20_000, "direct"), expected.cdf)


def test_rare_states_are_drawn_as_rarely_as_they_are(key):
    pause = with_pauses(Constant(1.0), 1e-5, Constant(2.0))
    steps, ranks = 10_000, 2_000
    seen = int(np.sum(np.asarray(draw(Slowest(pause, ranks), key, steps, "direct")) > 1.5))
    assert_fraction(seen, steps, -np.expm1(ranks * np.log1p(-1e-5)))


def test_states_rarer_than_a_32_bit_uniform_resolves(key, monkeypatch):
    """A last state of probability 10⁻⁸ is the one drawn at the levels above log(1 − 10⁻⁸), which rounds to 0 in 32 bits."""
    levels = jnp.array([-1e-12, -0.9e-8, -1.1e-8, -1e-4, -30.0])
    monkeypatch.setattr(direct, "_levels", lambda key, steps, copy: levels)
    pause = with_pauses(Constant(1.0), 1e-8, Constant(2.0))
    np.testing.assert_array_equal(draw(pause, key, 5, "direct"), [2.0, 2.0, 1.0, 1.0, 1.0])


def test_the_tail_beyond_a_32_bit_uniform(key):
    """A float32 uniform ends an exponential at 15.942; one in nine steps of 2²⁰ ranks lies beyond."""
    ranks, steps, cap = 1 << 20, 2000, 15.942385
    sample = np.asarray(draw(Slowest(Exponential(1.0), ranks), key, steps, "direct"), np.float64)
    beyond = -np.expm1(ranks * np.log1p(-np.exp(-cap)))
    assert 0.11 < beyond < 0.13
    assert_fraction(int(np.sum(sample > cap)), steps, beyond)
    assert_law(sample, lambda t: (-np.expm1(-t)) ** ranks)
    assert len(np.unique(sample)) > 0.99 * steps
    with pytest.raises(AssertionError, match="KS distance"):
        assert_law(np.minimum(sample, cap - 1.5), lambda t: (-np.expm1(-t)) ** ranks)


_BIG = """
import jax
from mc.delays import Exponential, Slowest, draw
draws = draw(Slowest(Exponential(1.0), 1e6), jax.random.key(0), 1000, "direct")
assert 12 < float(draws.mean()) < 17, draws.mean()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark is read from /proc")
def test_memory_is_bounded():
    """10⁶ ranks × 10³ steps would be 4 GB as float32.

    getrusage would count the test process too, which the child was for a moment before it became one of its own.
    """
    run = subprocess.run([sys.executable, "-c", _BIG], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 500_000  # kB
