"""Persistent slowness: classes of ranks against a realisation in which every unit draws its factor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Lognormal, ParameterError
from mc.step import Compute, Persistent, draw_classes
from mc.step.persistent import factors
from tests.stats import assert_fraction, assert_law, assert_mean, assert_same_law

# 240 ranks, 8 to a node, 40 to a rack.
SLOW_RACKS = Persistent("racks", 40, 0.2, 1.5)
SLOW_NODES = Persistent("nodes", 8, 0.1, 1.3)
SLOW_RANKS = Persistent("ranks", 1, 0.02, 2.0)
SPREAD = Persistent("spread", 1, spread=Lognormal(1.0, 0.05))
NODE_SPREAD = Persistent("node spread", 8, spread=Lognormal(1.0, 0.03))


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled():
    """Many programs that run once: what optimising takes is not earned back."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def brute(entries, ranks, realisations, seed=7):
    """Factor of every rank: (realisations, ranks)."""
    rng = np.random.default_rng(seed)
    found = np.ones((realisations, ranks))
    for entry in entries:
        units = -(-ranks // entry.unit)
        if entry.spread is None:
            own = np.where(
                rng.random((realisations, units)) < float(entry.fraction), float(entry.slowdown), 1.0
            )
        else:
            own = np.exp(float(entry.spread.sigma) * rng.standard_normal((realisations, units)))
        found *= np.repeat(own, entry.unit, axis=1)[:, :ranks]
    return found


def by_classes(entries, ranks, realisations, key, unit=1):
    classes = draw_classes(entries, ranks, key, realisations, unit=unit)
    own = jax.jit(jax.vmap(lambda each: factors(entries, each)))(jax.tree.map(jnp.asarray, classes))
    return np.asarray(own, np.float64), classes.counts


def test_nested_fractions_against_every_rank(key):
    entries = (SLOW_RANKS, SLOW_NODES, SLOW_RACKS)
    own, counts = by_classes(entries, 240, 4000, key)
    assert own.shape == counts.shape == (4000, 8)
    np.testing.assert_array_equal(counts.sum(axis=1), 240)
    simulated = brute(entries, 240, 4000)
    for limit in (1.4, 1.9, 2.5, 2.9, 3.5):
        # How many ranks are slower than that.
        assert_same_law((counts * (own > limit)).sum(axis=1), (simulated > limit).sum(axis=1))
    # The control: slow ranks that do not come by nodes have the same mean and another law.
    alone = (Persistent("nodes", 1, 0.1, 1.3),)
    own, counts = by_classes(alone, 240, 4000, key)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(
            (counts * (own > 1.2)).sum(axis=1), (brute((SLOW_NODES,), 240, 4000) > 1.2).sum(axis=1)
        )


@pytest.mark.parametrize("ranks", [1, 20, 240, 5000])
def test_the_slowest_of_a_spread_is_exact(ranks, key):
    own, counts = by_classes((SPREAD,), ranks, 3000, key)
    np.testing.assert_array_equal(counts.sum(axis=1), ranks)
    normal = stats.norm(scale=0.05)
    assert_law(np.log(own[:, 0]), lambda x: normal.cdf(x) ** ranks)
    assert (np.diff(own, axis=1)[counts[:, 1:] > 0] <= 0).all()
    if ranks > 12:
        # The twelfth slowest: fewer than twelve of n are beyond it.
        assert_law(np.log(own[:, 11]), lambda x: stats.binom.cdf(11, ranks, normal.sf(x)))


def test_runs_have_the_spread_of_their_ranks(key):
    own, counts = by_classes((SPREAD,), 5000, 400, key)
    mean = (own * counts).sum(axis=1) / 5000
    assert mean.mean() == pytest.approx(np.exp(0.05**2 / 2), rel=1e-3)
    for quantile in (0.1, 0.5, 0.9, 0.99):
        beyond = (counts * (np.log(own) > 0.05 * stats.norm.ppf(quantile))).sum(axis=1).mean() / 5000
        assert beyond == pytest.approx(1 - quantile, rel=0.12)


@pytest.mark.parametrize(
    "entries",
    [
        (SLOW_RANKS, SLOW_NODES, SLOW_RACKS),
        (SPREAD,),
        (SPREAD, SLOW_NODES),
        (SLOW_RANKS, NODE_SPREAD),
        (SPREAD, NODE_SPREAD),
    ],
    ids=["fractions", "spread", "spread in slow nodes", "slow ranks in a spread of nodes", "two spreads"],
)
def test_the_slowest_rank_against_brute_force(entries, key):
    # One step of each of many realisations, and the next step of the same.
    realisations, ranks = 4000, 240
    compute = Compute(Lognormal(1.0, 0.02), ranks, entries)
    classes = draw_classes(compute.persistent, ranks, key, realisations)

    @jax.jit
    def two_steps(indices, classes):
        keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(indices)
        return jax.vmap(lambda key, own: compute.draw(key, 2, classes=own))(keys, classes)

    drawn = np.asarray(two_steps(jnp.arange(realisations), jax.tree.map(jnp.asarray, classes)))
    rng = np.random.default_rng(11)
    simulated = brute(entries, ranks, realisations)[:, None, :] * rng.lognormal(
        0.0, 0.02, (realisations, 2, ranks)
    )
    simulated = simulated.max(axis=2)
    assert_same_law(drawn[:, 0], simulated[:, 0])
    # What stays: the change from step to step is the transient part alone.
    assert_same_law(drawn[:, 1] - drawn[:, 0], simulated[:, 1] - simulated[:, 0])
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(drawn[:, 1] - np.roll(drawn[:, 0], 1), simulated[:, 1] - simulated[:, 0])


@pytest.mark.parametrize("entries", [(SPREAD, NODE_SPREAD), (SLOW_RANKS, SLOW_NODES, SLOW_RACKS)])
def test_more_ranks_are_slower(entries, key):
    previous = np.zeros((20, 0))
    for ranks in (8, 160, 320):
        own, counts = by_classes(entries, ranks, 20, key)
        found = np.stack(
            [np.sort(np.repeat(f, n.astype(int)))[::-1] for f, n in zip(own, counts, strict=True)]
        )
        # For fractions rank for rank in descending order; for spreads, whose runs differ, the slowest.
        checked = previous.shape[1] if entries[0].spread is None else min(previous.shape[1], 1)
        assert (found[:, :checked] >= previous[:, :checked]).all()
        previous = found


def test_a_billion_ranks_cost_what_a_thousand_cost(key):
    own, counts = by_classes((SPREAD, SLOW_NODES), 10**9, 3, key)
    np.testing.assert_array_equal(counts.sum(axis=1), 10**9)
    assert own.shape[1] < 400
    assert_mean(counts[:, own.shape[1] // 2 :].sum(axis=1) / 1e9 + np.array([-1e-9, 0.0, 1e-9]), 0.1)


def test_units_of_a_node(key):
    own, counts = by_classes((SLOW_NODES,), 20, 2000, key, unit=8)
    np.testing.assert_array_equal(counts.sum(axis=1), 3)
    assert_fraction(int((counts[:, 1] == 0).sum()), 2000, 0.9**3)
    np.testing.assert_allclose(own, np.tile([1.0, 1.3], (2000, 1)), rtol=1e-6)


def test_kinds_of_chips_against_every_rank(key):
    # 160 chips as they are, 80 of an older kind; slow nodes and ranks among both.
    entries, kinds = (SLOW_RANKS, SLOW_NODES), ((160, 1.0), (80, 1.8))
    classes = draw_classes(entries, 240, key, 4000, kinds=kinds)
    own = np.asarray(jax.vmap(lambda each: factors(entries, each))(jax.tree.map(jnp.asarray, classes)))
    np.testing.assert_array_equal(classes.counts.sum(axis=1), 240)
    simulated = brute(entries, 240, 4000) * np.repeat([1.0, 1.8], [160, 80])
    for limit in (1.2, 1.9, 2.2, 3.0, 3.7):
        assert_same_law((classes.counts * (own > limit)).sum(axis=1), (simulated > limit).sum(axis=1))
    compute = Compute(Lognormal(1.0, 0.02), 240, entries, kinds=kinds)
    assert_mean(
        simulated[:, 7] / 3 * 2 + simulated[:, 200] / 3, float(compute.mean_of_one()) / np.exp(0.02**2 / 2)
    )


def test_kinds_without_anything_persistent(key):
    compute = Compute(Lognormal(1.0, 0.02), 24, kinds=((16, 1.0), (8, 1.5)))
    classes = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[0]), draw_classes((), 24, key, 1, kinds=compute.kinds)
    )
    drawn = compute.draw(key, 20_000, classes=classes)
    # Eight chips half as fast again decide.
    assert_law(drawn, lambda t: stats.lognorm.cdf(t, 0.02, scale=1.5) ** 8)


def test_gradients_in_slowdown_and_spread(key):
    def slowest(slowdown, sigma):
        entries = (Persistent("a", 1, spread=Lognormal(1.0, sigma)), Persistent("b", 8, 0.5, slowdown))
        compute = Compute(Lognormal(1.0, 0.02), 16, entries)
        return jnp.mean(compute.draw(key, 200, classes=classes))

    static = (SPREAD, Persistent("b", 8, 0.5, 1.3))
    classes = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), draw_classes(static, 16, key, 1))
    point = jnp.asarray(1.3), jnp.asarray(0.05)
    found = jax.grad(slowest, argnums=(0, 1))(*point)
    for index, step in enumerate((1e-2, 1e-3)):
        shifted = [list(point), list(point)]
        shifted[0][index] += step
        shifted[1][index] -= step
        difference = (slowest(*shifted[0]) - slowest(*shifted[1])) / (2 * step)
        assert float(found[index]) == pytest.approx(float(difference), rel=2e-2, abs=1e-3)


def test_three_spreads_are_too_many(key):
    entries = tuple(Persistent(str(unit), unit, spread=Lognormal(1.0, 0.1)) for unit in (1, 8, 40))
    with pytest.raises(ParameterError, match="at most two persistent spreads; got 3"):
        draw_classes(entries, 240, key, 1)
