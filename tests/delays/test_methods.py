"""Three ways to the same distribution: `exact`, `direct` and `grid` against the oracle and against each other.

With 20,000 draws each, a one-sample test rejects at a distance of 0.023 and a two-sample test at 0.033; a fifth more ranks (a distance of
0.067) is caught in over 99.9 % of the cases, and the negative controls below differ by at least 0.08.
"""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from mc.delays import Slowest, SlowestOf, Sum, draw
from mc.random import stream
from tests.delays import oracle
from tests.delays.laws import LAWS, prepared
from tests.stats import assert_law, assert_same_law

COUNT = 20_000
RANKS = 12
_EXPONENTIAL = stats.expon(scale=1e-5)
METHODS = ["exact", "direct", "grid"]


@eqx.filter_jit
def _draw(law, key, method):
    return draw(law, stream(key, method), COUNT, method)


def _plain(name, method):
    # Exact draws of sums and of a few classes are taken apart, which tables put in beforehand would prevent.
    made = LAWS[name].make()
    return prepared(name) if method == "exact" and not isinstance(made, (Sum, SlowestOf)) else made


def _rounded(sample):
    # An atom is smeared by 2⁻²⁰ of its value.
    return np.array([float(f"{value:.4e}") for value in np.asarray(sample, np.float64)])


def _assert_law(name, sample, ranks=1.0):
    law = LAWS[name]
    if law.smooth:
        assert_law(sample, oracle.slowest(law.oracle, ranks).cdf)
        return
    uniform = np.random.default_rng(20261202).uniform(size=COUNT)
    exact = oracle.slowest(law.oracle, ranks).quantile(oracle.log_odds(np.log(uniform)))
    assert_same_law(_rounded(sample), _rounded(exact))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LAWS)
def test_each_method_has_the_law(name, method, key):
    _assert_law(name, _draw(_plain(name, method), key, method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [name for name in LAWS if not name.startswith(("sum of", "nested"))])
def test_each_method_has_the_law_of_the_slowest(name, method, key):
    law = prepared(name) if method == "exact" else LAWS[name].make()
    _assert_law(name, _draw(Slowest(law, RANKS), key, method), RANKS)


@pytest.mark.parametrize("name", ["exponential", "shared fate", "nested shared fate", "different ranks", "hypoexponential"])
def test_the_methods_agree(name, key):
    samples = [_draw(_plain(name, method), key, method) for method in METHODS]
    assert_same_law(samples[0], samples[1])
    assert_same_law(samples[1], samples[2])
    assert not np.array_equal(samples[0], samples[1])


def _reject(sample, law):
    with pytest.raises(AssertionError, match="KS distance"):
        assert_law(sample, law.cdf)


@pytest.mark.parametrize("method", METHODS)
def test_a_fifth_more_ranks_is_rejected(method, key):
    sample = _draw(Slowest(LAWS["exponential"].make(), RANKS), key, method)
    _reject(sample, oracle.slowest(LAWS["exponential"].oracle, 1.2 * RANKS))


@pytest.mark.parametrize("method", METHODS)
def test_a_dropped_state_is_rejected(method, key):
    sample = _draw(_plain("shared fate", method), key, method)
    rank = oracle.shifted(oracle.from_scipy(_EXPONENTIAL), 1e-4)
    _reject(sample, oracle.shared_fate(rank, 8, 16, [0.92, 0.08], [1.0, 1.6], [0.0, 1e-5]))


@pytest.mark.parametrize("method", METHODS)
def test_group_and_groups_swapped_is_rejected(method, key):
    sample = _draw(_plain("shared fate", method), key, method)
    rank = oracle.shifted(oracle.from_scipy(_EXPONENTIAL), 1e-4)
    _reject(sample, oracle.shared_fate(rank, 16, 8, [0.9, 0.08, 0.02], [1.0, 1.6, 4.0], [0.0, 1e-5, 5e-5]))


@pytest.mark.parametrize("method", ["exact", "direct"])
def test_a_dropped_straggler_is_rejected(method, key):
    """The different ranks without the slow one of them."""
    law = LAWS["different ranks"].make()
    fast = SlowestOf(jax.tree.map(lambda leaf: leaf[np.array([0, 1, 2, 4])], law.delays))
    _reject(_draw(fast, key, method), LAWS["different ranks"].oracle)
