"""A forward sweep of exponential durations is last-passage percolation, whose law is known.

G(p, m), the longest way through a p × m grid of independent exponential times, has the law of the largest eigenvalue
of a complex Wishart matrix (K. Johansson, Comm. Math. Phys. 209 (2000), 1.4), whose distribution function is a
determinant of incomplete gamma functions (C. Khatri, Ann. Math. Statist. 35 (1964)); E G is near (√p + √m)².
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from mc.delays import Exponential
from mc.pipeline import Kind, completion, draws_of, timetable_of
from tests.stats import ALPHA, assert_law

KEY = jax.random.key(20261202)
LAW = Exponential(1.0)


def sweep(p, m, samples):
    """When the last stage has the last micro-batch; backwards take no time."""
    table = timetable_of("gpipe", p, m)
    draws = draws_of(KEY, jnp.arange(samples))

    def duration(rows):
        return jnp.where((rows.kind == Kind.FORWARD)[:, None], LAW.quantile(draws.levels(rows)), 0.0)

    return np.asarray(jax.jit(lambda: completion(table, duration, samples).makespan)())


def largest_eigenvalue(p, m):
    """Its distribution function for a complex Wishart matrix of p × m, p <= m."""
    i, j = np.indices((p, p))
    scale = np.prod([special.gamma(m - k) * special.gamma(p - k) for k in range(p)])

    def cdf(t):
        degree = (m - p + i + j + 1).astype(float)
        terms = special.gammainc(degree, np.asarray(t)[:, None, None]) * special.gamma(degree)
        return np.linalg.det(terms) / scale

    return cdf


@pytest.mark.parametrize(("p", "m"), [(2, 3), (4, 6)])
def test_it_has_the_law_of_the_largest_eigenvalue(p, m):
    assert_law(sweep(p, m, 20_000), largest_eigenvalue(p, m))


def test_another_size_has_another_law():
    # Negative control.
    with pytest.raises(AssertionError, match=f"< {ALPHA}"):
        assert_law(sweep(2, 3, 20_000), largest_eigenvalue(2, 4))


def test_growth():
    # Tracy-Widom: the mean lies 1.77 of (√p + √m)^(4/3)(pm)^(−1/6) below the limit, the spread is 0.90 of it.
    p, m = 16, 64
    found = sweep(p, m, 400)
    scale = (np.sqrt(p) + np.sqrt(m)) ** (4 / 3) * (p * m) ** (-1 / 6)
    assert found.mean() == pytest.approx((np.sqrt(p) + np.sqrt(m)) ** 2 - 1.771 * scale, abs=0.35 * scale)
    assert found.std() == pytest.approx(0.9018 * scale, rel=0.25)
    # A barrier after each of the m + p − 1 diagonals would take far longer.
    barriers = sum(special.digamma(min(k, p, m + p - k) + 1) + np.euler_gamma for k in range(1, m + p))
    assert found.mean() < 0.7 * barriers
