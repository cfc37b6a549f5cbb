"""Delays once more, in float64 NumPy and scipy: what the laws of `mc.delays` are held against.

An oracle is a pair of functions, log S(t) and log F(t), each precise where it is the smaller probability;
scipy has them for the families, and the closed formulas for maxima, mixtures, shifts and factors act on the
pair. A quantile is found by bisection in float64, an inverse that shares no code with the library's.
`log_odds` uses whichever of the two is precise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

Times = NDArray[np.float64]


def log_complement(log_p: ArrayLike) -> Times:
    """log(1 − p) from log p."""
    log_p = np.minimum(np.asarray(log_p, np.float64), 0.0)
    with np.errstate(divide="ignore"):
        return np.where(log_p > -0.7, np.log(-np.expm1(log_p)), np.log1p(-np.exp(log_p)))


def log_odds(log_survival: ArrayLike) -> Times:
    """log F − log S from log S."""
    return log_complement(log_survival) - np.asarray(log_survival, np.float64)


@dataclass(frozen=True)
class Oracle:
    """log S and log F as functions of float64 times, each precise where it is far below 0."""

    log_survival: Callable[[Times], Times]
    log_cdf: Callable[[Times], Times]
    log_pdf: Callable[[Times], Times] | None = None

    def log_odds(self, t: ArrayLike) -> Times:
        t = np.asarray(t, np.float64)
        log_s, log_f = self.log_survival(t), self.log_cdf(t)
        late = log_s < log_f
        with np.errstate(invalid="ignore"):
            return np.where(late, log_complement(log_s) - log_s, log_f - log_complement(log_f))

    def assert_quantiles(self, times: ArrayLike, odds: Times, tolerance: float) -> None:
        """`times` are the quantiles at `odds` to a relative error of `tolerance`: the law passes there in between."""
        times = np.asarray(times, np.float64)
        inside = (self.log_odds(times * (1 - tolerance)) <= odds) & (
            self.log_odds(times * (1 + tolerance)) >= odds
        )
        assert inside.all(), (
            f"at log-odds {odds[~inside]}: {times[~inside]} against {self.quantile(odds[~inside])}"
        )

    def log_density(self, t: ArrayLike) -> Times:
        """In closed form, or from the slope of the log-odds, f = S·F·dy/dt, by a central difference."""
        t = np.asarray(t, np.float64)
        if self.log_pdf is not None:
            return self.log_pdf(t)
        slope = (self.log_odds(t * (1 + 1e-5)) - self.log_odds(t * (1 - 1e-5))) / (2e-5 * t)
        y = self.log_odds(t)
        return np.log(slope) - np.logaddexp(y, 0.0) - np.logaddexp(-y, 0.0)

    def cdf(self, t: ArrayLike) -> Times:
        return np.exp(self.log_cdf(np.asarray(t, np.float64)))

    def quantile(self, odds: ArrayLike) -> Times:
        """The smallest time with log-odds ≥ `odds`, by bisection in log t over 10⁻⁴⁰ … 10³⁰ s."""
        odds = np.asarray(odds, np.float64)
        low, high = np.full(odds.shape, -92.0), np.full(odds.shape, 69.0)
        for _ in range(64):
            middle = 0.5 * (low + high)
            early = self.log_odds(np.exp(middle)) < odds
            low, high = np.where(early, middle, low), np.where(early, high, middle)
        return np.exp(high)


def from_scipy(frozen) -> Oracle:
    """A frozen scipy distribution."""

    def quiet(function):
        def evaluate(t):
            with np.errstate(divide="ignore", invalid="ignore"):
                return function(t)

        return evaluate

    return Oracle(quiet(frozen.logsf), quiet(frozen.logcdf), quiet(frozen.logpdf))


def steps(values: Sequence[float], probabilities: Sequence[float]) -> Oracle:
    """Atoms at `values`."""

    def sum_where(condition):
        total = sum(p * condition(v) for v, p in zip(values, probabilities, strict=True))
        with np.errstate(divide="ignore"):
            return np.log(total)

    return Oracle(lambda t: sum_where(lambda v: t < v), lambda t: sum_where(lambda v: t >= v))


def shifted(law: Oracle, shift: float) -> Oracle:
    """T + shift."""
    log_pdf = law.log_pdf and (lambda t: law.log_pdf(t - shift))
    return Oracle(lambda t: law.log_survival(t - shift), lambda t: law.log_cdf(t - shift), log_pdf)


def scaled(law: Oracle, factor: float) -> Oracle:
    """T × factor."""
    log_pdf = law.log_pdf and (lambda t: law.log_pdf(t / factor) - np.log(factor))
    return Oracle(lambda t: law.log_survival(t / factor), lambda t: law.log_cdf(t / factor), log_pdf)


def slowest(law: Oracle, ranks: float) -> Oracle:
    """F^n."""
    return slowest_of([law], [ranks])


def slowest_of(laws: Sequence[Oracle], ranks: Sequence[float]) -> Oracle:
    """Π F_i^{n_i}, with log F taken from log S where that is the precise one."""

    def log_cdf(t):
        total = np.zeros(np.shape(t))
        for law, count in zip(laws, ranks, strict=True):
            log_s = law.log_survival(t)
            total = total + count * np.where(log_s < -0.7, log_complement(log_s), law.log_cdf(t))
        return total

    return Oracle(lambda t: log_complement(log_cdf(t)), log_cdf)


def mixture(probabilities: Sequence[float], laws: Sequence[Oracle]) -> Oracle:
    """Σ π_k S_k and Σ π_k F_k."""
    weights = np.asarray(probabilities)

    def total(functions):
        def evaluate(t):
            parts = np.stack([np.broadcast_to(f(t), np.shape(t)) for f in functions])
            shape = (-1,) + (1,) * np.ndim(t)
            with np.errstate(divide="ignore"):
                return logsumexp(parts, axis=0, b=weights.reshape(shape))

        return evaluate

    return Oracle(total([law.log_survival for law in laws]), total([law.log_cdf for law in laws]))


def shared_fate(law: Oracle, group, groups, probabilities, slowdowns, delays) -> Oracle:
    """S_all = 1 − (1 − Σ π_k (1 − F_k^g))^G, with F_k(t) = F((t − d_k)/c_k)."""
    together = slowest(law, group)
    states = [shifted(scaled(together, c), d) for c, d in zip(slowdowns, delays, strict=True)]
    return slowest(mixture(probabilities, states), groups)
