"""How late messages are, against order statistics and Erlang laws."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from mc.delays import Constant, Exponential
from mc.training import build_lateness
from tests.stats import assert_law, assert_same_law

RNG = np.random.default_rng(5)
COUNT = 20_000
WORDS = RNG.integers(0, 1 << 32, COUNT, dtype=np.uint64)


def drawn(late, messages, state=0):
    row, states = jnp.full((1, 1), messages), jnp.full((1, COUNT), state, jnp.int32)
    return np.asarray(late.draw(row, states, jnp.asarray(WORDS[None], jnp.uint32)), np.float64)[0]


def test_one_message_is_as_late_as_the_slowest_of_its_ranks():
    late = build_lateness(Exponential(2e-5), (None,), 8, [1])
    assert_law(drawn(late, 1), lambda t: stats.expon(scale=2e-5).cdf(t) ** 8)
    np.testing.assert_array_equal(drawn(late, 0), 0.0)


def test_messages_that_follow_one_another_add_up():
    late = build_lateness(Exponential(2e-5), (None,), 1, [3, 12])
    for count in (3, 12):
        assert_law(drawn(late, count), stats.gamma(count, scale=2e-5).cdf)


def test_states_add_what_they_say():
    late = build_lateness(Constant(1e-5), (None, Exponential(4e-5)), 4, [2])
    np.testing.assert_allclose(drawn(late, 2), 2e-5, rtol=1e-6)
    assert_law(drawn(late, 2, state=1) - 2e-5, stats.gamma(2, scale=4e-5).cdf)


def test_message_by_message_it_is_the_same():
    late = build_lateness(Exponential(2e-5), (None, Exponential(4e-5)), 3, [2, 5])
    assert late is not None
    state, messages = jnp.ones((1, COUNT), jnp.int32), jnp.full((1, 1), 5)
    levels = jnp.asarray(np.log(RNG.random((late.most * 4, 1, COUNT))), jnp.float32)
    each = late.draw_each(messages, state, lambda source: levels[source])
    assert_same_law(drawn(late, 5, state=1), np.asarray(each)[0])


def test_where_nothing_is_random_there_is_nothing():
    assert build_lateness(None, (None, None), 4, [2]) is None
