"""Float32 against float64 far out in both tails: quantiles of the slowest of up to 10⁹ ranks, log S and log density.

Levels run from survival 1 − 10⁻⁷ to 10⁻¹² *of the maximum*, which for 10⁹ ranks is 10⁻²¹ of one rank.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mc.delays import Gamma, Slowest, with_inverse
from tests.delays import oracle
from tests.delays.laws import LAWS, SMOOTH, prepared

TOLERANCE = 1e-5
RANKS = np.array([1, 8, 1_000, 1_000_000, 1_000_000_000], np.float32)
_EARLY, _LATE = np.logspace(-7, -0.4, 40), np.logspace(-0.4, -12, 60)
# What the library sees is the rounded level, so that is the level at which it is judged.
LEVELS = np.concatenate([np.log1p(-_EARLY), np.log(_LATE)]).astype(np.float32)
ODDS = oracle.log_odds(LEVELS)


@eqx.filter_jit
def _quantiles(law, ranks, levels):
    return jax.vmap(lambda n: Slowest(law, n).quantile(levels))(ranks)


@pytest.mark.parametrize("name", [name for name in LAWS if name not in ("different ranks", "sum of three")])
def test_quantiles_of_the_slowest(name):
    found = _quantiles(prepared(name), jnp.asarray(RANKS), jnp.asarray(LEVELS))
    for ranks, times in zip(RANKS, found, strict=True):
        oracle.slowest(LAWS[name].oracle, float(ranks)).assert_quantiles(times, ODDS, TOLERANCE)


@pytest.mark.parametrize("name", ["gamma 3", "gamma 10000", "rare pauses", "different ranks", "erlang"])
def test_quantiles_by_bisection(name):
    """The quantile that needs no table, one rank."""
    found = eqx.filter_jit(lambda law: law.quantile(jnp.asarray(LEVELS)))(LAWS[name].make())
    LAWS[name].oracle.assert_quantiles(found, ODDS, TOLERANCE)


@eqx.filter_jit
def _log_survival(law, t):
    return law.log_survival(t)


@eqx.filter_jit
def _log_survival_and_density(law, t):
    return law.log_survival(t), law.log_density(t)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "sum of three"])
def test_log_survival_and_density(name):
    """log S to 10⁻⁵ in log-odds, relative where they are large, or exact at a time within 10⁻⁶ of t; log f likewise.

    The second is all that 32 bits can give where a fixed part of t is much larger than its jitter.
    """
    law = LAWS[name].oracle
    t = law.quantile(np.linspace(-16, 27, 150)).astype(np.float32)
    log_s, log_f = (
        np.asarray(x, np.float64) for x in _log_survival_and_density(LAWS[name].make(), jnp.asarray(t))
    )
    t = t.astype(np.float64)

    def assert_close(found, function, tolerance):
        ends = np.stack([function(t * (1 - 1e-6)), function(t), function(t * (1 + 1e-6))])
        margin = tolerance * np.maximum(1.0, np.abs(ends[1]))
        # A peak between the two ends is above both; the margin covers that.
        inside = (found >= ends.min(axis=0) - margin) & (found <= ends.max(axis=0) + margin)
        assert inside.all(), f"at {t[~inside]}: {found[~inside]} against {ends[1][~inside]}"

    assert_close(oracle.log_odds(log_s), law.log_odds, TOLERANCE)
    off_the_kinks = np.all(np.abs(np.log(t)[:, None] - np.log(_kinks(name))[None, :]) > 1e-3, axis=1)
    log_f, t = log_f[off_the_kinks], t[off_the_kinks]
    assert_close(log_f, law.log_density, 3e-5)


def _kinks(name):
    # An empirical density is a staircase; every knot is a step.
    return np.asarray(LAWS[name].make().times, np.float64) if name == "empirical" else np.array([1.0])


@pytest.mark.parametrize("name", LAWS)
def test_nothing_before_the_support_and_nothing_after_it(name):
    law = LAWS[name].make()
    log_s = np.asarray(_log_survival(law, jnp.asarray([0.0, 1e-37, 1e30], jnp.float32)))
    assert log_s[0] == 0.0
    assert np.all(np.diff(log_s) <= 0)
    assert log_s[-1] < -20


def test_the_atoms_of_a_mixture_of_constants():
    """Between the atoms S is flat, and exact."""
    law = LAWS["link states"].make()
    found = law.log_survival(jnp.array([0.99e-5, 1.01e-5, 2.99e-5, 3.01e-5]))
    np.testing.assert_allclose(
        found, np.log([1.0, 0.1, 0.1, 0.0], where=[1, 1, 1, 0], out=np.full(4, -np.inf)), rtol=1e-6
    )


@pytest.mark.parametrize("shape", [0.05, 0.4, 0.99, 1.0, 2.5, 15.99, 16.01, 100.0, 1e6])
def test_gamma_over_all_shapes(shape):
    """The series, the continued fraction and Temme's expansion, on both sides of where they meet."""
    found = _quantiles(_GAMMA_TABLE(Gamma(shape, 1.0)), jnp.asarray(RANKS), jnp.asarray(LEVELS))
    for ranks, times in zip(RANKS, np.asarray(found, np.float64), strict=True):
        law = oracle.slowest(oracle.from_scipy(stats.gamma(shape)), float(ranks))
        in_odds = np.abs(law.log_odds(times) - ODDS)
        expected = law.quantile(ODDS)
        in_time = np.abs(times / expected - 1)
        # A small shape has a steep quantile function near 0, t ~ F^{1/a}: there the level's own rounding
        # shows, and soon the range of 32-bit numbers ends.
        assert np.where(expected > 1e-30, np.minimum(in_odds, in_time), 0.0).max() < TOLERANCE
        assert np.all(times[expected < 1e-36] < 1e-35)


_GAMMA_TABLE = eqx.filter_jit(with_inverse)
