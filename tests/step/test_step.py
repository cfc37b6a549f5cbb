"""The step against closed forms, theorems and a brute-force simulation in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, Exponential, Lognormal, ParameterError, Shifted, draw
from mc.exchange import ExchangePhase, congestion_law
from mc.fabric import LinkStates
from mc.step import Classes, Compute, Persistent, Step, draw_classes
from tests.stats import assert_fraction, assert_law, assert_mean, assert_same_law


def _draws(step, key, *, classes=None, size=20_000, method="exact"):
    cells = np.arange(1 if classes is None else len(classes.counts))
    draw_step = eqx.filter_jit(Step.draw)
    return draw_step(step, key, cells, 0 * cells, classes, size=size, method=method)


def _slow_chips(fraction, slowdown):
    return (Persistent("slow chips", 1, fraction, slowdown),)


def _some_slow(ranks, slow):
    """One realisation in which `slow` of `ranks` chips are slow."""
    return Classes(jnp.array([[[0.0], [1.0]]]), jnp.array([[ranks - slow, slow]]))


def test_constant_step_is_the_sum_of_its_parts(key):
    phases = (ExchangePhase("node: ring", 2e-5, 3e-5), ExchangePhase("pod: tree", 1e-5, 4e-5))
    step = Step(Compute(Constant(1e-4), 1024), phases)
    draws = _draws(step, key, size=8)
    np.testing.assert_allclose(draws.compute, 1e-4, rtol=1e-6)
    np.testing.assert_array_equal(draws.congestion, 0.0)
    assert float(step.latency_floor()) == pytest.approx(3e-5, rel=1e-6)
    assert float(step.transfer()) == pytest.approx(7e-5, rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "direct", "grid"])
def test_compute_is_the_slowest_rank(key, method):
    step = Step(Compute(Shifted(Exponential(1e-5), 1e-4), 64), ())
    draws = _draws(step, key, method=method)
    assert_law(draws.compute, lambda t: stats.expon.cdf(t, loc=1e-4, scale=1e-5) ** 64)


@pytest.mark.parametrize("method", ["exact", "direct", "grid"])
def test_slow_chips_against_brute_force(key, method):
    # 100 ranks, 7 of them slow by 1.3: NumPy draws every rank.
    rng = np.random.default_rng(5)
    factor = np.r_[np.ones(93), np.full(7, 1.3)]
    brute = (rng.lognormal(np.log(1e-3), 0.1, (20_000, 100)) * factor).max(axis=1)
    step = Step(Compute(Lognormal(1e-3, 0.1), 100, _slow_chips(0.05, 1.3)), ())
    draws = np.asarray(_draws(step, key, classes=_some_slow(100.0, 7.0), method=method).compute)
    assert_same_law(draws, brute)
    # The control: one slow chip fewer in eight is not noticed by chance, none of them slow must be.
    healthy = _draws(step, key, classes=_some_slow(100.0, 0.0), method=method)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(np.asarray(healthy.compute), brute)


def test_mean_of_one_rank():
    compute = Compute(Exponential(2e-3), 10, _slow_chips(0.25, 1.4))
    assert float(compute.mean_of_one()) == pytest.approx(2e-3 * (0.75 + 0.25 * 1.4), rel=1e-5)


def test_slow_chip_counts_are_binomial_and_monotone(key):
    def slow(ranks):
        return draw_classes(_slow_chips(0.005, 1.2), ranks, key, 20_000).counts[:, 1]

    counts, more = slow(1000), slow(2000)
    assert_mean(counts, 5.0)
    assert_fraction(int((counts == 0).sum()), counts.size, stats.binom.pmf(0, 1000, 0.005))
    assert (more >= counts).all()
    assert (2000 - more >= 1000 - counts).all()


def test_doubling_the_cluster_never_shortens_a_step(key):
    previous = np.zeros(())
    slow = _slow_chips(0.01, 1.2)
    for ranks in (8, 16, 64, 1024, 2048):
        step = Step(Compute(Lognormal(1e-3, 0.05), ranks, slow), ())
        drawn = np.asarray(_draws(step, key, classes=draw_classes(slow, ranks, key, 64), size=50).compute)
        assert (drawn >= previous).all()
        previous = drawn


def test_congestion_is_the_worst_of_the_groups(key):
    # 9 groups; each adds 0, 20 or 110 µs to a transfer of 20 µs.
    law = congestion_law(
        2e-5,
        group=8,
        groups=9,
        probabilities=jnp.array([0.9, 0.08, 0.02]),
        states=LinkStates([1.0, 2.0, 6.0], [0.0, 0.0, 1e-5]),
    )
    drawn = np.round(np.asarray(draw(law, key, 40_000)) * 1e6).astype(int)
    assert set(drawn) == {0, 20, 110}
    assert_fraction(int((drawn == 0).sum()), drawn.size, 0.9**9)
    assert_fraction(int((drawn == 110).sum()), drawn.size, 1 - 0.98**9)


def test_congestion_with_jitter_against_brute_force(key):
    rng = np.random.default_rng(11)
    state = rng.choice(2, (20_000, 5), p=[0.7, 0.3])
    jitter = rng.exponential(3e-6, (20_000, 5, 4)).max(axis=2)
    brute = (jitter + np.array([0.0, 1e-5])[state]).max(axis=1)
    law = congestion_law(
        1e-5,
        group=4,
        groups=5,
        probabilities=jnp.array([0.7, 0.3]),
        states=LinkStates([1.0, 2.0], [0.0, 0.0]),
        jitter=Exponential(3e-6),
    )
    for method in ("exact", "direct"):
        assert_same_law(draw(law, key, 20_000, method), brute)


def test_nothing_random_is_no_law():
    assert congestion_law(1e-5, group=4, groups=5) is None


def test_draws_do_not_depend_on_the_call(key):
    step = Step(Compute(Lognormal(1e-3, 0.1), 32), ())
    draw_step = eqx.filter_jit(Step.draw)

    def cells(realisations, chunks):
        return draw_step(step, key, realisations, chunks, size=16).compute

    together = cells(np.array([0, 0, 1]), np.array([0, 1, 0]))
    for row, (realisation, chunk) in enumerate([(0, 0), (0, 1), (1, 0)]):
        alone = cells(np.array([realisation]), np.array([chunk]))
        np.testing.assert_array_equal(alone[0], together[row])
    assert len(np.unique(np.asarray(together))) == together.size


def test_one_kernel_serves_every_size_of_cluster(key):
    traces = []

    @eqx.filter_jit
    def sample(step):
        traces.append(1)
        return step.draw(key, jnp.arange(2), jnp.zeros(2, int), size=8).compute

    for ranks, median in ((8, 1e-3), (64, 2e-3), (10**6, 3e-3)):
        sample(Step(Compute(Lognormal(median, 0.1), ranks), ()))
    assert len(traces) == 1


def test_gradient_of_the_mean_step(key):
    # Pathwise: d mean/dθ of the slowest of n exponentials is H_n.
    def mean(theta):
        step = Step(Compute(Exponential(theta), 16), ())
        return jnp.mean(step.draw(key, jnp.arange(1), jnp.zeros(1, int), size=50_000).compute)

    harmonic = sum(1 / k for k in range(1, 17))
    gradient = float(jax.jit(jax.grad(mean))(1e-3))
    # Var of the slowest of n is Σ 1/k² < π²/6; 6.1 standard errors.
    assert abs(gradient - harmonic) < 6.1 * np.sqrt(np.pi**2 / 6 / 50_000)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Compute(Constant(1.0), 0), "ranks: expected a number >= 1"),
        (lambda: Persistent("x", 1, -0.1), "slow fraction: expected a number >= 0"),
        (lambda: Persistent("x", 1, 0.1, 0.5), "slowdown: expected a number >= 1"),
        (lambda: Persistent("x", 0, 0.1), "unit: expected at least one rank; got 0"),
        (lambda: Persistent("x", 1), "expected either a fraction or a spread"),
        (lambda: ExchangePhase("x", -1.0, 0.0), "latency: expected a number >= 0"),
    ],
)
def test_errors(make, match):
    with pytest.raises(ParameterError, match=match):
        make()
