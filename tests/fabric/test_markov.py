"""Chains of link states: their stationary laws, their memory, and counts against a simulation of every link."""

import numpy as np
import pytest
from scipy import stats

from mc.fabric import LinkStateError, MarkovChain
from mc.fabric.markov import compositions, on_paths
from tests.stats import assert_fraction, assert_mean, assert_same_law

EPISODES = MarkovChain.episodes([0.9, 0.08, 0.02], [5.0, 20.0])


def every_link(chain, links, sequences, steps, seed=5):
    """States of every link, simulated one by one: (sequences, steps, links)."""
    rng = np.random.default_rng(seed)
    state = rng.choice(chain.states, (sequences, links), p=chain.stationary)
    found = [state]
    ends = np.cumsum(chain.transition, axis=1)
    for _ in range(steps - 1):
        state = (rng.random((*state.shape, 1)) > ends[state]).sum(axis=-1).clip(max=chain.states - 1)
        found.append(state)
    return np.stack(found, axis=1)


@pytest.mark.parametrize(
    "chain",
    [
        EPISODES,
        MarkovChain.memoryless([0.5, 0.3, 0.2], 0.7),
        MarkovChain.memoryless([0.4, 0.6]),
        MarkovChain.of([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]),
        MarkovChain.of([[0.9, 0.1, 0.0], [0.0, 0.4, 0.6], [0.0, 0.3, 0.7]]),  # a state that is left for good
        MarkovChain.of([[1.0]]),
        EPISODES.loaded(4.0),
        on_paths(EPISODES, 3),
    ],
)
def test_the_stationary_law_is_stationary(chain):
    np.testing.assert_allclose(chain.stationary @ chain.transition, chain.stationary, atol=1e-14)
    np.testing.assert_allclose(chain.transition.sum(axis=1), 1, atol=1e-12)
    assert (chain.transition >= 0).all()
    np.testing.assert_allclose(
        MarkovChain.of(chain.transition).stationary, chain.stationary, rtol=1e-9, atol=1e-15
    )


def test_a_rare_state_keeps_its_digits():
    chain = MarkovChain.of([[1 - 1e-12, 1e-12], [0.25, 0.75]])
    assert chain.stationary[1] == pytest.approx(1e-12 / (0.25 + 1e-12), rel=1e-13)


def test_episodes_last_as_long_as_said():
    assert 1 / (1 - EPISODES.transition[1, 1]) == pytest.approx(5)
    assert 1 / (1 - EPISODES.transition[2, 2]) == pytest.approx(20)
    np.testing.assert_allclose(EPISODES.stationary, [0.9, 0.08, 0.02], rtol=1e-12)


def test_load_raises_the_odds():
    for chain in (
        EPISODES,
        MarkovChain.memoryless([0.9, 0.08, 0.02]),
        MarkovChain.memoryless([0.9, 0.08, 0.02], 0.5),
    ):
        previous = 0.0
        for log_odds in (-1.0, 0.0, 0.5, 3.0, 20.0):
            loaded = chain.loaded(log_odds)
            busy = 1 - loaded.stationary[0]
            assert busy / loaded.stationary[0] == pytest.approx(np.exp(log_odds) / 9, rel=1e-9)
            assert previous < busy <= 1
            assert loaded.stationary[1] / loaded.stationary[2] == pytest.approx(4)
            assert loaded.remembers is chain.remembers
            previous = busy


def test_counts_against_every_link(key):
    sequences, steps, links = 2000, 6, 12
    counts = EPISODES.counts(key, links, sequences, steps)
    brute = every_link(EPISODES, links, sequences, steps)
    np.testing.assert_array_equal(counts.sum(axis=2), links)
    for state in range(3):
        simulated = (brute == state).sum(axis=2)
        for step in (0, 1, 5):
            assert_same_law(counts[:, step, state], simulated[:, step])
        # Two steps together: the sum and the difference of the counts have the same law.
        assert_same_law(counts[:, 4, state] + counts[:, 5, state], simulated[:, 4] + simulated[:, 5])
        assert_same_law(counts[:, 4, state] - counts[:, 5, state], simulated[:, 4] - simulated[:, 5])
    # The control: counts that forget have another difference.
    forgetful = MarkovChain.memoryless(EPISODES.stationary).counts(key, links, sequences, steps)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_same_law(
            forgetful[:, 4, 1] - forgetful[:, 5, 1], (brute[:, 4] == 1).sum(1) - (brute[:, 5] == 1).sum(1)
        )


def test_autocorrelation_is_the_persistence(key):
    chain = MarkovChain.memoryless([0.7, 0.3], 0.8)
    counts = chain.counts(key, 50, 4000, 3)[..., 1] - 15.0
    variance = 50 * 0.7 * 0.3
    for lag in (1, 2):
        assert_mean(counts[:, 0] * counts[:, lag] / variance, 0.8**lag)


def test_the_law_of_the_counts_is_binomial(key):
    counts = EPISODES.counts(key, 1_000_000, 500, 10)
    assert_mean(counts[:, -1, 2], 20_000)
    none = EPISODES.counts(key, 30, 5000, 2)[:, 1, 2] == 0
    assert_fraction(int(none.sum()), none.size, stats.binom.pmf(0, 30, 0.02))


def test_counts_do_not_depend_on_the_call(key):
    long = EPISODES.counts(key, 40, 5, 700)
    np.testing.assert_array_equal(EPISODES.counts(key, 40, 5, 300), long[:, :300])
    np.testing.assert_array_equal(EPISODES.counts(key, 40, 2, 700), long[:2])


@pytest.mark.parametrize("chain", [EPISODES, MarkovChain.memoryless([0.6, 0.3, 0.1]), on_paths(EPISODES, 2)])
def test_more_links_mean_more_in_every_state(chain, key):
    previous = np.zeros((4, 60, chain.states))
    for links in (1, 2, 16, 32, 1000):
        counts = chain.counts(key, links, 4, 60)
        assert (counts >= previous).all()
        previous = counts


def test_paths_against_every_path(key):
    chain, paths = MarkovChain.episodes([0.7, 0.3], [4.0]), 4
    assert compositions(2, 4).tolist() == [[4, 0], [3, 1], [2, 2], [1, 3], [0, 4]]
    bundle = on_paths(chain, paths)
    brute = (every_link(chain, 6 * paths, 3000, 3).reshape(3000, 3, 6, paths) == 1).sum(axis=3)
    counts = bundle.counts(key, 6, 3000, 3)
    for busy in range(paths + 1):
        simulated = (brute == busy).sum(axis=2)
        assert_same_law(counts[:, 2, busy] - counts[:, 0, busy], simulated[:, 2] - simulated[:, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MarkovChain.of([[0.5, 0.5], [0.2, 0.7]]), r"row 1: \[0.2, 0.7\], which adds up to 0.9"),
        (lambda: MarkovChain.of([[1.2, -0.2], [0.5, 0.5]]), "got row 0"),
        (
            lambda: MarkovChain.of([[0.5, 0.5]]),
            r"expected a square matrix, one row per state; got shape \(1, 2\)",
        ),
        (lambda: MarkovChain.of(np.eye(2)), "got states 0 and 1, which never lead to each other"),
        (lambda: MarkovChain.memoryless([0.5, 0.4]), "expected probabilities that add up to 1"),
        (lambda: MarkovChain.memoryless([0.5, 0.5], 1.0), r"persistence: expected a number in \[0, 1\)"),
        (lambda: MarkovChain.episodes([0.9, 0.1], [0.5]), "expected 1 times of at least one step"),
        (
            lambda: MarkovChain.episodes([0.1, 0.9], [2.0]),
            "they begin in 0.45 of the steps, and it holds in 0.1",
        ),
        (lambda: compositions(4, 9), "expected at most 128 ways .* got 220 for 9 paths of 4 states"),
    ],
)
def test_errors(make, message):
    with pytest.raises(LinkStateError, match=message):
        make()
