"""Three ways to the same distribution: `exact`, `direct` and `grid` against the oracle and against each other.

With 20,000 draws each, a one-sample test rejects at a distance of 0.023 and a two-sample test at 0.033. The
negative controls are 0.06 and more away from the truth, where a distance has a standard deviation of 0.004:
they are rejected with near certainty.
"""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from mc.delays import Slowest, SlowestOf, Sum, draw
from mc.random import stream
from tests.delays import oracle
from tests.delays.laws import FAMILIES, LAWS, prepared
from tests.stats import assert_law, assert_same_law

COUNT = 20_000
RANKS = 12
METHODS = ["exact", "direct", "grid"]
KEY = jax.random.key(20261202)


@eqx.filter_jit
def _draw(law, key, method):
    return draw(law, stream(key, method), COUNT, method)


@functools.cache
def _sample(name, method):
    made = LAWS[name].make()
    # Exact draws of sums and of a few classes are taken apart, which tables put in beforehand would prevent.
    whole = method != "exact" or isinstance(made, (Sum, SlowestOf))
    return np.asarray(_draw(made if whole else prepared(name), KEY, method), np.float64)


def _assert_law(name, sample, ranks=1.0):
    law = oracle.slowest(LAWS[name].oracle, ranks)
    if LAWS[name].smooth:
        assert_law(sample, law.cdf)
        return
    # An atom is smeared, by 2⁻²⁰ of its value or over a cell of the grid.
    uniform = np.random.default_rng(20261202).uniform(size=COUNT)
    expected = law.quantile(oracle.log_odds(np.log(uniform)))
    assert_same_law(*(np.char.mod("%.3g", times).astype(float) for times in (sample, expected)))


def _pairs(names):
    return [(name, method) for name in names for method in METHODS]


@pytest.mark.parametrize(("name", "method"), _pairs(LAWS))
def test_each_method_has_the_law(name, method):
    _assert_law(name, _sample(name, method))


@pytest.mark.parametrize(("name", "method"), _pairs([*FAMILIES, "rare pauses", "erlang"]))
def test_each_method_has_the_law_of_the_slowest(name, method):
    law = prepared(name) if method == "exact" else LAWS[name].make()
    _assert_law(name, _draw(Slowest(law, RANKS), KEY, method), RANKS)


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.smooth])
def test_the_methods_agree(name):
    exact, direct, grid = (_sample(name, method) for method in METHODS)
    assert_same_law(exact, direct)
    assert_same_law(direct, grid)
    assert not np.array_equal(exact, direct)


def _reject(sample, law):
    with pytest.raises(AssertionError, match="KS distance"):
        assert_law(sample, law.cdf)


@pytest.mark.parametrize("method", METHODS)
def test_a_fifth_more_ranks_is_rejected(method):
    sample = _draw(Slowest(LAWS["exponential"].make(), RANKS), KEY, method)
    _reject(sample, oracle.slowest(LAWS["exponential"].oracle, 1.2 * RANKS))


_RANK = oracle.shifted(oracle.from_scipy(stats.expon(scale=1e-5)), 1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_dropped_state_is_rejected(method):
    without = oracle.shared_fate(_RANK, 8, 16, [0.92, 0.08], [1.0, 1.6], [0.0, 1e-5])
    _reject(_sample("shared fate", method), without)


@pytest.mark.parametrize("method", METHODS)
def test_group_and_groups_swapped_is_rejected(method):
    swapped = oracle.shared_fate(_RANK, 16, 8, [0.9, 0.08, 0.02], [1.0, 1.6, 4.0], [0.0, 1e-5, 5e-5])
    _reject(_sample("shared fate", method), swapped)


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_a_dropped_straggler_is_rejected(method):
    """The different ranks without the slow one of them."""
    delays = LAWS["different ranks"].make().delays
    fast = SlowestOf(jax.tree.map(lambda leaf: leaf[np.array([0, 1, 2, 4])], delays))
    _reject(_draw(fast, KEY, method), LAWS["different ranks"].oracle)
