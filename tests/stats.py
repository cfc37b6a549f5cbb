"""The suite's one budget for false alarms, and the only three ways a test may judge random output.

A single statistical assertion fails by chance with probability `ALPHA`. The suite makes fewer than 1,000 of
them, so a green tree turns red by chance with probability below 10⁻⁶. All keys in the suite are literals, so
a test that passes once passes always on the same JAX; the budget is what a *new* key, or a new generator, may
cost.

`assert_law` compares a sample with a distribution function (Kolmogorov-Smirnov), `assert_same_law` two
samples, `assert_fraction` a count with a probability (exact binomial: right for any law, heavy tails
included), and `assert_mean` a sample mean with its expectation in standard errors (only for laws with a
finite fourth moment).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

ALPHA = 1e-9


def assert_law(sample: ArrayLike, cdf: Callable[[np.ndarray], np.ndarray]) -> None:
    """One-sample Kolmogorov-Smirnov test at level `ALPHA`; `cdf` takes float64 times."""
    result = stats.kstest(np.asarray(sample, np.float64).ravel(), cdf)
    assert result.pvalue > ALPHA, f"KS distance {result.statistic:.3g}, p = {result.pvalue:.3g} < {ALPHA}"


def assert_same_law(first: ArrayLike, second: ArrayLike) -> None:
    """Two-sample Kolmogorov-Smirnov test at level `ALPHA`."""
    result = stats.ks_2samp(np.asarray(first).ravel(), np.asarray(second).ravel())
    assert result.pvalue > ALPHA, f"KS distance {result.statistic:.3g}, p = {result.pvalue:.3g} < {ALPHA}"


def assert_fraction(count: int, trials: int, probability: float) -> None:
    """Exact two-sided binomial test at level `ALPHA`: `count` successes in `trials` of `probability` each."""
    result = stats.binomtest(int(count), int(trials), float(probability))
    assert result.pvalue > ALPHA, (
        f"{count}/{trials} against {probability:.6g}: p = {result.pvalue:.3g} < {ALPHA}"
    )


def assert_mean(sample: ArrayLike, expected: float) -> None:
    """The sample mean is within the two-sided normal quantile of `ALPHA` standard errors of `expected`."""
    values = np.asarray(sample, np.float64).ravel()
    error = values.std(ddof=1) / np.sqrt(values.size)
    score = abs(values.mean() - expected) / error
    limit = stats.norm.isf(ALPHA / 2)
    assert score < limit, (
        f"mean {values.mean():.6g} against {expected:.6g}: {score:.2f} standard errors, limit {limit:.2f}"
    )
