"""Links that remember: the slowest group by counts, against a simulation of every link and rank."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Constant, Exponential, draw
from mc.estimate import mean_estimate
from mc.exchange import CountedExcess, ExchangePhase, congestion_law
from mc.fabric import LinkStates, MarkovChain
from mc.step import Compute, Step
from tests.stats import ALPHA, assert_mean, assert_same_law

GROUPS, GROUP, TRANSFER = 6, 4, 1e-5
CHAIN = MarkovChain.episodes([0.85, 0.1, 0.05], [4.0, 10.0])
STATES = LinkStates([1.0, 2.0, 3.0], [0.0, 0.0, 5e-6])
SEQUENCES, STEPS = 4000, 3


def every_link(*, jitter=None, queueing=None, chain=CHAIN, seed=9):
    """Excess of each step: every link's chain, every rank's jitter, every queue's delay."""
    rng = np.random.default_rng(seed)
    state = rng.choice(3, (SEQUENCES, GROUPS), p=chain.stationary)
    fixed = np.array([0.0, 1e-5, 2.5e-5])
    found = []
    for _ in range(STEPS):
        times = fixed[state]
        if jitter is not None:
            times = times + rng.exponential(jitter, (*state.shape, GROUP)).max(axis=2)
        if queueing is not None:
            times = times + np.where(state == 2, rng.exponential(queueing, state.shape), 0.0)
        found.append(times.max(axis=1))
        state = (
            (rng.random((*state.shape, 1)) > np.cumsum(chain.transition, axis=1)[state])
            .sum(axis=-1)
            .clip(max=2)
        )
    return np.stack(found, axis=1)


def by_counts(key, *, states=STATES, jitter=None, chain=CHAIN):
    excess = CountedExcess.of(0, states, TRANSFER, group=GROUP, jitter=jitter)
    step = Step(Compute(Constant(1e-3), 24), (ExchangePhase("pod", 0.0, TRANSFER, excess),))
    counts = jnp.asarray(chain.counts(key, GROUPS, SEQUENCES, STEPS), jnp.float32)
    cells = jnp.arange(SEQUENCES)
    draw_steps = eqx.filter_jit(
        lambda step: step.prepared().draw(key, cells, 0 * cells, None, (counts,), size=STEPS)
    )
    return np.asarray(draw_steps(step).congestion)


def assert_same_sequence(drawn, simulated):
    for step in (0, STEPS - 1):
        assert_same_law(drawn[:, step], simulated[:, step])
    assert_same_law(drawn[:, 2] + drawn[:, 1], simulated[:, 2] + simulated[:, 1])
    assert_same_law(drawn[:, 2] - drawn[:, 1], simulated[:, 2] - simulated[:, 1])


@pytest.mark.parametrize("jitter", [None, 3e-6])
def test_a_sequence_against_every_link(key, jitter):
    law = None if jitter is None else Exponential(jitter)
    drawn, simulated = by_counts(key, jitter=law), every_link(jitter=jitter)
    if jitter is None:
        # A step has one of three values: compared in whole units.
        drawn, simulated = np.round(drawn * 1e6), np.round(simulated * 1e6)
    assert_same_sequence(drawn, simulated)
    # The control: links that forget give steps whose difference is another.
    forgetful = every_link(jitter=jitter, chain=MarkovChain.memoryless(CHAIN.stationary))
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(drawn[:, 2] - drawn[:, 1], forgetful[:, 2] - forgetful[:, 1])


def test_random_queues_against_every_link(key):
    states = LinkStates([1.0, 2.0, 3.0], [0.0, 0.0, 5e-6], (None, None, Exponential(2e-5)))
    drawn, simulated = by_counts(key, states=states), every_link(queueing=2e-5)
    # Most steps have one of two fixed values: compared in nanoseconds.
    assert_same_sequence(np.round(drawn * 1e9), np.round(simulated * 1e9))


def test_lag_one_autocorrelation(key):
    # One link of two states: the excess is its state, whose autocorrelation is the persistence.
    chain = MarkovChain.memoryless([0.6, 0.4], 0.7)
    counts = jnp.asarray(chain.counts(key, 1, SEQUENCES, STEPS), jnp.float32)
    excess = CountedExcess.of(0, LinkStates([1.0, 2.0], [0.0, 0.0]), 1.0, group=1)
    drawn = np.asarray(jax.vmap(lambda each: excess.draw(key, each))(counts), np.float64) - 0.4
    assert_mean(drawn[:, 0] * drawn[:, 1] / 0.24, 0.7)


@pytest.mark.parametrize(("queueing", "jitter"), [(None, 3e-6), (2e-5, None)])
def test_without_memory_the_counts_give_the_law(key, queueing, jitter):
    queues = () if queueing is None else (None, None, Exponential(queueing))
    states = LinkStates([1.0, 2.0, 3.0], [0.0, 0.0, 5e-6], queues)
    chain = MarkovChain.memoryless(CHAIN.stationary)
    noise = None if jitter is None else Exponential(jitter)
    law = congestion_law(
        TRANSFER,
        group=GROUP,
        groups=GROUPS,
        probabilities=jnp.asarray(chain.stationary),
        states=states,
        jitter=noise,
    )
    assert law is not None
    counted = by_counts(key, states=states, chain=chain, jitter=noise)
    drawn = np.asarray(jax.jit(lambda: draw(law, key, 12_000))())
    # In nanoseconds: without jitter most steps have one of two fixed values, each a little smeared in a mixture.
    assert_same_law(np.round(counted * 1e9), np.round(drawn * 1e9))


def test_more_groups_never_shorten_a_step(key):
    excess = CountedExcess.of(0, STATES, TRANSFER, group=GROUP, jitter=Exponential(3e-6))
    previous = np.zeros(())
    for groups in (1, 2, 8, 64, 1000):
        counts = jnp.asarray(CHAIN.counts(key, groups, 8, 50), jnp.float32)
        drawn = np.asarray(jax.vmap(lambda each: excess.draw(key, each))(counts))
        assert (drawn >= previous).all()
        previous = drawn


def test_intervals_of_sequences_cover(key):
    # 200 runs of 40 sequences of 60 steps; the mean number of busy links is known.
    runs, sequences = 200, 40
    chain = MarkovChain.episodes([0.9, 0.1], [20.0])
    busy = chain.counts(key, 5, runs * sequences, 60)[..., 1].reshape(runs, sequences, 60)
    covered = [each.low <= 0.5 <= each.high for each, _ in map(mean_estimate, busy)]
    # 95 % promised, less the two points that the laws of the coverage study may miss.
    assert sum(covered) > stats.binom.ppf(ALPHA, runs, 0.93)
    # The control: steps taken for independent promise too much.
    naive = [mean_estimate(each.reshape(1, -1))[0] for each in busy]
    assert sum(each.low <= 0.5 <= each.high for each in naive) < stats.binom.ppf(ALPHA, runs, 0.93)


def test_gradients_in_slowdown_and_jitter(key):
    counts = jnp.asarray(CHAIN.counts(key, GROUPS, 1, 400), jnp.float32)[0]

    def mean(slowdown, theta):
        states = LinkStates(jnp.stack([jnp.ones(()), 2 * jnp.ones(()), slowdown]), jnp.zeros(3))
        excess = CountedExcess.of(0, states, 1.0, group=GROUP, jitter=Exponential(theta))
        return jnp.mean(excess.draw(key, counts))

    point = jnp.asarray(3.0), jnp.asarray(0.2)
    found = jax.grad(mean, argnums=(0, 1))(*point)
    for index in range(2):
        ends = [mean(*(p + sign * 1e-2 * (i == index) for i, p in enumerate(point))) for sign in (1, -1)]
        assert float(found[index]) == pytest.approx(float(ends[0] - ends[1]) / 2e-2, rel=5e-2)
        assert float(found[index]) > 0


def test_queueing_for_a_port_is_congestion(key):
    step = Step(Compute(Constant(1e-3), 8), (ExchangePhase("node: direct", 1e-6, 1e-4, queueing=2e-5),))
    drawn = step.draw(key, jnp.arange(1), jnp.zeros(1, int), size=4)
    np.testing.assert_allclose(drawn.congestion, 2e-5, rtol=1e-6)
    assert float(step.transfer()) == pytest.approx(1e-4)
