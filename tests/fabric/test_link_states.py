"""What states do to messages, spread over paths and drawn for every group."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.config import CongestionConfig, IncastConfig
from mc.delays import Exponential
from mc.fabric import (
    Incast,
    LinkStateError,
    LinkStates,
    MarkovChain,
    SharedLinks,
    build_incast,
    build_links,
    draw_link_factors,
    simultaneous_senders,
    spread_over_paths,
)
from tests.stats import assert_fraction, assert_law

CHAIN = MarkovChain.memoryless([0.7, 0.2, 0.1])
STATES = LinkStates([1.0, 2.0, 4.0], [0.0, 1e-6, 5e-6])


def test_excess_of_a_transfer():
    np.testing.assert_allclose(STATES.excess(jnp.asarray(1e-5)), [0.0, 1.1e-5, 3.5e-5], rtol=1e-6)


def test_adaptive_paths_add_their_bandwidths():
    chain, states = spread_over_paths(
        MarkovChain.memoryless([0.5, 0.5]), LinkStates([1.0, 4.0], [0.0, 3.0]), 2
    )
    np.testing.assert_allclose(chain.stationary, [0.25, 0.5, 0.25])
    # Two paths, one 4x slower: 2 / (1 + 1/4); it carries a fifth of the bytes.
    np.testing.assert_allclose(states.slowdowns, [1.0, 1.6, 4.0], rtol=1e-6)
    np.testing.assert_allclose(states.delays, [0.0, 0.6, 3.0], rtol=1e-6)


def test_adaptive_paths_finish_together():
    # Bytes shared so that all paths finish at one time take that time: d_i + c_i · share_i · p · transfer.
    _, states = spread_over_paths(CHAIN, STATES, 3)
    transfer, slow, delay = 1e-4, np.array([1.0, 2.0, 4.0]), np.array([0.0, 1e-6, 5e-6])
    end = float(states.slowdowns[4] * transfer + states.delays[4])  # one path in each state
    shares = (end - delay) / (slow * 3 * transfer)
    assert shares.sum() == pytest.approx(1, rel=1e-5)


def test_oblivious_paths_wait_for_the_slowest():
    chain, states = spread_over_paths(CHAIN, STATES, 4, "oblivious")
    slowest = np.asarray(states.slowdowns)
    assert chain.stationary[slowest == 1].sum() == pytest.approx(0.7**4)
    assert chain.stationary[slowest == 4].sum() == pytest.approx(1 - 0.9**4)


def test_link_factors_of_every_group(key):
    links = SharedLinks(
        CHAIN, LinkStates([1.0, 2.0, 4.0], [0.0, 0.0, 1e-5], (None, None, Exponential(1e-5))), 8, 6
    )
    slowdown, delay = draw_link_factors(links, key, 4000)
    assert slowdown.shape == delay.shape == (6, 4000)
    for value, probability in ((1.0, 0.7), (2.0, 0.2), (4.0, 0.1)):
        assert_fraction(int((slowdown == value).sum()), slowdown.size, probability)
    late = np.asarray(delay)[np.asarray(slowdown) == 4.0]
    assert_law(late, lambda t: stats.expon.cdf(t, loc=1e-5, scale=1e-5))
    assert (np.asarray(delay)[np.asarray(slowdown) < 4.0] == 0).all()
    # Groups are independent: all idle at once.
    idle = (slowdown == 1).all(axis=0)
    assert_fraction(int(idle.sum()), idle.size, 0.7**6)
    np.testing.assert_array_equal(links.group_of(jnp.array([0, 7, 8, 47])), [0, 0, 1, 5])


def test_link_factors_do_not_depend_on_the_other_groups(key):
    many, few = (draw_link_factors(SharedLinks(CHAIN, STATES, 8, groups), key, 50) for groups in (9, 4))
    for more, less in zip(many, few, strict=True):
        np.testing.assert_array_equal(more[:4], less)


def test_link_factors_have_gradients(key):
    def mean(slow, theta):
        states = LinkStates(jnp.stack([jnp.ones(()), slow]), jnp.zeros(2), (None, Exponential(theta)))
        links = SharedLinks(MarkovChain.memoryless([0.5, 0.5]), states, 8, 4)
        slowdown, delay = draw_link_factors(links, key, 500)
        return jnp.mean(slowdown), jnp.mean(delay)

    slow, theta = jnp.asarray(3.0), jnp.asarray(2e-6)
    rate = jax.grad(lambda s: mean(s, theta)[0])(slow)
    wait = jax.grad(lambda t: mean(slow, t)[1])(theta)
    # Each is the value's share per unit of the parameter.
    assert float(rate) == pytest.approx((float(mean(slow, theta)[0]) - 1) / 2, rel=1e-4)
    assert float(wait) == pytest.approx(float(mean(slow, theta)[1]) / 2e-6, rel=1e-3)


def test_incast_grows_from_one_to_its_bound():
    port = Incast(buffer=1e6, window=1e5, penalty=0.5)
    factors = np.asarray(port.factor(jnp.array([1, 10, 20, 100, 10**6])))
    np.testing.assert_allclose(factors, [1, 1, 1.25, 1.45, 1.499995], rtol=1e-6)
    assert simultaneous_senders("direct", 64) == 63
    assert simultaneous_senders("pairwise", 64) == simultaneous_senders("direct", 1) == 1
    assert build_incast(IncastConfig(buffer="1 MB", window="100 kB", penalty=0.5)).factor(
        20
    ) == pytest.approx(1.25)


def _links(ranks=64, oversubscription=1.0, **keys):
    states = [{"name": "idle", "probability": "90 %"}, {"name": "busy", "probability": "10 %", "slowdown": 3}]
    config = CongestionConfig.model_validate({"shared_by": "node", "states": states, **keys})
    return build_links(config, group=8, groups=8, ranks=ranks, oversubscription=oversubscription)


def test_growth_by_the_doubling():
    growth = {"per_doubling": 0.5, "at_ranks": 64}
    for ranks, log_odds in ((64, 0.0), (128, 0.5), (1024, 2.0), (32, -0.5)):
        busy = _links(ranks, growth=growth).chain.stationary[1]
        assert busy / (1 - busy) == pytest.approx(np.exp(log_odds) / 9)


def test_load_takes_its_share_of_an_oversubscribed_link():
    states = [{"name": "idle", "probability": 0.5}, {"name": "busy", "probability": 0.5, "load": "20 %"}]
    for oversubscription, slowdown in ((1.0, 1.25), (2.0, 1 / 0.6), (4.0, 5.0)):
        links = _links(oversubscription=oversubscription, states=states)
        assert float(links.states.slowdowns[1]) == pytest.approx(slowdown)


def test_memory_from_the_file():
    assert not _links().chain.remembers
    assert _links(persistence=0.9).chain.transition[1, 1] == pytest.approx(0.9 + 0.1 * 0.1)
    states = [{"name": "idle", "probability": 0.9}, {"name": "busy", "probability": 0.1, "holding": 4}]
    assert _links(states=states).chain.transition[1, 1] == pytest.approx(0.75)
    matrix = [[0.9, 0.1], [0.5, 0.5]]
    bare = [{"name": "idle"}, {"name": "busy", "slowdown": 2}]
    np.testing.assert_allclose(_links(states=bare, transition=matrix).chain.stationary, [5 / 6, 1 / 6])
    assert _links(spread={"paths": 4}).chain.states == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinkStates([1.0, 2.0], [0.0]), "expected a slowdown and a delay for each state"),
        (lambda: spread_over_paths(CHAIN, STATES, 0), "paths: expected a whole number of at least 1; got 0"),
        (
            lambda: spread_over_paths(CHAIN, STATES, 2, "random"),
            "expected `adaptive` or `oblivious`; got 'random'",
        ),
        (
            lambda: spread_over_paths(
                CHAIN, LinkStates([1, 1, 1], [0, 0, 0], (None, None, Exponential(1.0))), 2
            ),
            "expected fixed delays where traffic is spread over several paths",
        ),
        (
            lambda: SharedLinks(CHAIN, LinkStates([1.0], [0.0]), 8, 8),
            "expected as many states as the chain has, 3",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(LinkStateError, match=message):
        make()
