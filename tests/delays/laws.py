"""Every family and every composed law under test: a name, how it is made, and its oracle in float64.

Each property in this folder is tested over every entry; a new law is tested by being listed here. Times are
of the size of real ones: tens of microseconds of jitter on hundreds.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from mc.delays import (
    AbstractDelay,
    Constant,
    Discrete,
    Empirical,
    Exponential,
    Gamma,
    GeneralisedPareto,
    Latest,
    Lognormal,
    Mixture,
    Scaled,
    Shifted,
    Slowest,
    SlowestOf,
    Weibull,
    add,
    shared_fate,
    with_inverse,
    with_pauses,
)
from tests.delays import oracle
from tests.delays.oracle import Oracle, from_scipy

MEASURED = stats.lognorm(0.3, scale=2e-4).rvs(4000, random_state=20261202)


@dataclass(frozen=True)
class Law:
    """How a delay is made (anew each time, so that it follows the current precision), and what it must equal."""

    make: Callable[[], AbstractDelay]
    oracle: Oracle
    smooth: bool = True  # has a density on an interval: no atoms, no gaps


def _empirical_oracle(samples, tail_fraction: float = 0.1) -> Oracle:
    # Hazen's positions interpolated linearly in log-odds on an even grid of them, and scipy's own fit of the
    # tail.
    ordered = np.sort(samples)
    position = (np.arange(ordered.size) + 0.5) / ordered.size
    logit = np.log(position / (1 - position))
    grid = np.linspace(logit[0], np.log((1 - tail_fraction) / tail_fraction), 2048)
    times = np.interp(grid, logit, ordered)
    times[-1] = threshold = np.quantile(ordered, 1 - tail_fraction)
    excess = ordered[ordered > threshold] - threshold
    shape, _, scale = stats.genpareto.fit(excess, floc=0)
    times, grid = np.insert(times, 0, times[0] * (1 - 2.0**-21)), np.insert(grid, 0, -60.0)

    def log_survival(t):
        body = -np.logaddexp(np.interp(t, times, grid, left=-np.inf), 0.0)
        tail = np.log(tail_fraction) + stats.genpareto(shape, scale=scale).logsf(t - threshold)
        return np.where(t > threshold, tail, body)

    def log_cdf(t):
        body = -np.logaddexp(-np.interp(t, times, grid, left=-np.inf), 0.0)
        return np.where(t > threshold, oracle.log_complement(log_survival(t)), body)

    return Oracle(log_survival, log_cdf)


def _exponential(mean: float) -> Oracle:
    return from_scipy(stats.expon(scale=mean))


def _pareto(scale: float, shape: float) -> Oracle:
    return from_scipy(stats.genpareto(shape, scale=scale))


def _lognormal(median: float, sigma: float) -> Oracle:
    return from_scipy(stats.lognorm(sigma, scale=median))


def _hypoexponential(fast: float, slow: float) -> Oracle:
    # Sum of two exponentials of different means; log F by its own formula with expm1, which cancels only far
    # below 10⁻⁷.
    def log_survival(t):
        with np.errstate(divide="ignore"):
            return np.log((slow * np.exp(-t / slow) - fast * np.exp(-t / fast)) / (slow - fast))

    def log_cdf(t):
        with np.errstate(divide="ignore"):
            return np.log((fast * np.expm1(-t / fast) - slow * np.expm1(-t / slow)) / (slow - fast))

    return Oracle(log_survival, log_cdf)


FAMILIES: dict[str, Law] = {
    "constant": Law(lambda: Constant(3e-4), oracle.steps([3e-4], [1.0]), smooth=False),
    "exponential": Law(lambda: Exponential(2e-5), _exponential(2e-5)),
    "shifted exponential": Law(
        lambda: Shifted(Exponential(2e-5), 1e-4), oracle.shifted(_exponential(2e-5), 1e-4)
    ),
    "lognormal, narrow": Law(lambda: Lognormal(1e-4, 0.02), _lognormal(1e-4, 0.02)),
    "lognormal": Law(lambda: Lognormal(1e-4, 0.5), _lognormal(1e-4, 0.5)),
    "lognormal, wide": Law(lambda: Lognormal(1e-5, 2.0), _lognormal(1e-5, 2.0)),
    "gamma 0.4": Law(lambda: Gamma(0.4, 1e-5), from_scipy(stats.gamma(0.4, scale=1e-5))),
    "gamma 3": Law(lambda: Gamma(3.0, 1e-5), from_scipy(stats.gamma(3.0, scale=1e-5))),
    "gamma 15.9": Law(lambda: Gamma(15.9, 1e-5), from_scipy(stats.gamma(15.9, scale=1e-5))),
    "gamma 16": Law(lambda: Gamma(16.0, 1e-5), from_scipy(stats.gamma(16.0, scale=1e-5))),
    "gamma 10000": Law(lambda: Gamma(1e4, 1e-8), from_scipy(stats.gamma(1e4, scale=1e-8))),
    "weibull, stretched": Law(lambda: Weibull(1e-5, 0.5), from_scipy(stats.weibull_min(0.5, scale=1e-5))),
    "weibull": Law(lambda: Weibull(1e-4, 3.0), from_scipy(stats.weibull_min(3.0, scale=1e-4))),
    "pareto": Law(lambda: GeneralisedPareto(1e-5, 0.3), _pareto(1e-5, 0.3)),
    "pareto, no variance": Law(lambda: GeneralisedPareto(1e-5, 0.7), _pareto(1e-5, 0.7)),
    "pareto, bounded": Law(lambda: GeneralisedPareto(1e-5, -0.4), _pareto(1e-5, -0.4)),
    "pareto 0": Law(lambda: GeneralisedPareto(1e-5, 0.0), _pareto(1e-5, 0.0)),
    "empirical": Law(lambda: Empirical.fit(MEASURED), _empirical_oracle(MEASURED)),
    "discrete": Law(
        lambda: Discrete(jnp.array([3e-4, 1e-4, 2e-4]), jnp.array([0.05, 0.75, 0.2])),
        oracle.steps([1e-4, 2e-4, 3e-4], [0.75, 0.2, 0.05]),
        smooth=False,
    ),
}

_STATES = {"probabilities": [0.9, 0.08, 0.02], "slowdowns": [1.0, 1.6, 4.0], "delays": [0.0, 1e-5, 5e-5]}
_NODE_STATES = {"probabilities": [0.9, 0.1], "slowdowns": [1.0, 1.3], "delays": [0.0, 1e-5]}
_RACK_STATES = {"probabilities": [0.95, 0.05], "slowdowns": [1.0, 2.0], "delays": [0.0, 3e-5]}
_MEDIANS, _SIGMAS = [1e-4, 1.1e-4, 9e-5, 1.5e-4, 1e-4], [0.1, 0.2, 0.05, 0.1, 0.3]
_COUNTS = [4.0, 1.0, 7.0, 2.0, 100.0]


def _fate(rank: AbstractDelay, group: float, groups: float, states: dict) -> Slowest:
    arrays = {name: jnp.asarray(values, jnp.result_type(float)) for name, values in states.items()}
    return shared_fate(rank, group=group, groups=groups, **arrays)


def _batch(kind, *parameters):
    return jax.vmap(kind)(*(jnp.asarray(values, jnp.result_type(float)) for values in parameters))


COMPOSED: dict[str, Law] = {
    "scaled": Law(lambda: Scaled(Lognormal(1e-4, 0.5), 1.7), oracle.scaled(_lognormal(1e-4, 0.5), 1.7)),
    "slowest of 8": Law(lambda: Slowest(Exponential(1e-5), 8), oracle.slowest(_exponential(1e-5), 8)),
    "rare pauses": Law(
        lambda: with_pauses(Lognormal(1e-4, 0.02), 1e-3, Shifted(Exponential(1e-3), 1e-4)),
        oracle.mixture([0.999, 1e-3], [_lognormal(1e-4, 0.02), oracle.shifted(_exponential(1e-3), 1e-4)]),
    ),
    "link states": Law(
        lambda: Mixture(jnp.array([0.9, 0.1]), (Constant(1e-5), Constant(3e-5))),
        oracle.steps([1e-5, 3e-5], [0.9, 0.1]),
        smooth=False,
    ),
    "shared fate": Law(
        lambda: _fate(Shifted(Exponential(1e-5), 1e-4), 8, 16, _STATES),
        oracle.shared_fate(oracle.shifted(_exponential(1e-5), 1e-4), 8, 16, *_STATES.values()),
    ),
    "nested shared fate": Law(
        lambda: _fate(_fate(Lognormal(1e-4, 0.1), 4, 3, _NODE_STATES), 1, 5, _RACK_STATES),
        oracle.shared_fate(
            oracle.shared_fate(_lognormal(1e-4, 0.1), 4, 3, *_NODE_STATES.values()),
            1,
            5,
            *_RACK_STATES.values(),
        ),
    ),
    "different ranks": Law(
        lambda: SlowestOf(_batch(Lognormal, _MEDIANS, _SIGMAS)),
        oracle.slowest_of([_lognormal(m, s) for m, s in zip(_MEDIANS, _SIGMAS, strict=True)], [1.0] * 5),
    ),
    "classes of ranks": Law(
        lambda: SlowestOf(
            Slowest(_batch(Lognormal, _MEDIANS, _SIGMAS), jnp.asarray(_COUNTS, jnp.result_type(float)))
        ),
        oracle.slowest_of([_lognormal(m, s) for m, s in zip(_MEDIANS, _SIGMAS, strict=True)], _COUNTS),
    ),
    "latest of different kinds": Law(
        lambda: Latest((Slowest(Exponential(1e-5), 8), Lognormal(2e-5, 0.3))),
        oracle.slowest_of([_exponential(1e-5), _lognormal(2e-5, 0.3)], [8.0, 1.0]),
    ),
    "erlang": Law(lambda: add(Exponential(1e-5), Exponential(1e-5)), from_scipy(stats.gamma(2, scale=1e-5))),
    "hypoexponential": Law(lambda: add(Exponential(4e-5), Exponential(1e-5)), _hypoexponential(1e-5, 4e-5)),
    "sum of three": Law(
        lambda: add(add(Exponential(1e-5), Exponential(1e-5)), Exponential(1e-5)),
        from_scipy(stats.gamma(3, scale=1e-5)),
    ),
}

LAWS: dict[str, Law] = FAMILIES | COMPOSED
SMOOTH: list[str] = [name for name, law in LAWS.items() if law.smooth]

_WITH_INVERSE = eqx.filter_jit(with_inverse)


@functools.cache
def prepared(name: str) -> AbstractDelay:
    """The law `name` with its tables, in float32, built once for the whole suite: compiling a table takes seconds."""
    return _WITH_INVERSE(LAWS[name].make())
