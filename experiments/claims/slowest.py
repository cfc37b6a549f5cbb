"""Waiting for the slowest of n.

Its median is the 0.5^(1/n) quantile of one rank, whatever the law; here it is found once from the law of the
slowest rank and once from simulating all ranks. And doubling the cluster never helps: with the draws in
common each slowest rank of 2n is the slowest of n or a later one, and for exponential jitter of mean θ the
mean grows by θ(H_2n − H_n), which tends to θ ln 2.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.claims.claim import ALPHA, Claim, falls, mean_tolerance
from mc.delays import Exponential, Lognormal, Slowest, draw

# Ranks -> (percentile of one rank, %; half a unit in its last digit).
MEDIAN_PERCENTILE = {8: (91.70, 0.005), 1000: (99.931, 0.0005)}
# Ranks -> growth of the mean from n to 2n, us, for jitter of 10 us: 10·(H_2n − H_n), at last 10·ln 2.
JITTER_US = 10.0
MEAN_GROWTH = {1: 5.0, 1000: 6.928972, 10**9: 6.931472}
# The mean is an integral by quadrature, good to 10⁻⁵ of 200 us at most, and two are subtracted.
_GROWTH_TOLERANCE = 2e-3
DOUBLINGS = 20


def claims(samples: int) -> list[Claim]:
    """Median of the slowest, and what doubling does."""
    samples |= 1  # an odd number has a middle
    return [*_medians(samples), *_doubling(samples), *_growth(samples)]


@eqx.filter_jit
def _all_ranks_drawn(law: Slowest, key: jax.Array, count: int) -> jax.Array:
    return draw(law, key, count, "direct")


@eqx.filter_jit
def _median_percentile(law: Slowest) -> jax.Array:
    return 100 * jnp.exp(law.delay.log_cdf(law.quantile(jnp.log(0.5))))


def _rank() -> Lognormal:
    return Lognormal(100e-6, 0.1)


def _medians(samples: int) -> list[Claim]:
    found = []
    middle = (samples + 1) // 2
    for ranks, (expected, rounding) in MEDIAN_PERCENTILE.items():
        law = Slowest(_rank(), ranks)
        text = f"median slowest of {ranks:,}: percentile of one rank, %"
        found.append(Claim(f"{text}, from its law", expected, float(_median_percentile(law)), rounding))
        times = np.asarray(_all_ranks_drawn(law, jax.random.key(1), samples))
        median = np.sort(times)[middle - 1]
        # The middle one of the samples' percentiles to the power n has a beta distribution.
        ends = stats.beta(middle, samples + 1 - middle).ppf([ALPHA / 2, 1 - ALPHA / 2])
        noise = 100 * float(np.max(np.abs(ends ** (1 / ranks) - 0.5 ** (1 / ranks))))
        percentile = 100 * float(jnp.exp(law.delay.log_cdf(jnp.asarray(median))))
        found.append(Claim(f"{text}, every rank drawn", expected, percentile, rounding + noise))
    return found


@eqx.filter_jit
def _slowest_by_size(jitter: Exponential, ranks: jax.Array, key: jax.Array, count: int) -> jax.Array:
    return jax.vmap(lambda n: draw(Slowest(jitter, n), key, count))(ranks)


def _doubling(samples: int) -> list[Claim]:
    sizes = 2.0 ** jnp.arange(DOUBLINGS + 1)
    # The draws are shared: one level per step decides the slowest of any number of ranks ...
    exact = np.asarray(_slowest_by_size(_jitter(), sizes, jax.random.key(2), samples))
    # ... and of 2n simulated ranks n are the same as before.
    few, many = (_all_ranks_drawn(Slowest(_rank(), n), jax.random.key(3), samples) for n in (1000, 2000))
    drawn = np.stack([np.asarray(few), np.asarray(many)])
    return [
        Claim(
            f"steps that end earlier with 2n ranks, n = 1 to 2^{DOUBLINGS - 1}, from the law", 0, falls(exact)
        ),
        Claim("steps that end earlier with 2,000 ranks than with 1,000, every rank drawn", 0, falls(drawn)),
    ]


@eqx.filter_jit
def _mean_growth(jitter: Exponential, ranks: jax.Array) -> jax.Array:
    return jax.vmap(lambda n: Slowest(jitter, 2 * n).mean() - Slowest(jitter, n).mean())(ranks)


def _growth(samples: int) -> list[Claim]:
    growths = 1e6 * np.asarray(_mean_growth(_jitter(), jnp.asarray(list(MEAN_GROWTH), float)))
    found = [
        Claim(
            f"exponential jitter of 10 us, {n:,} to {2 * n:,} ranks: growth of the mean, us",
            expected,
            float(growth),
            _GROWTH_TOLERANCE,
        )
        for (n, expected), growth in zip(MEAN_GROWTH.items(), growths, strict=True)
    ]
    drawn = [
        1e6 * np.asarray(_all_ranks_drawn(Slowest(_jitter(), n), jax.random.key(4), samples), np.float64)
        for n in (1000, 2000)
    ]
    growth = drawn[1] - drawn[0]
    text = "exponential jitter of 10 us, 1,000 to 2,000 ranks: growth, us, every rank drawn"
    return [*found, Claim(text, MEAN_GROWTH[1000], float(growth.mean()), mean_tolerance(growth))]


def _jitter() -> Exponential:
    return Exponential(JITTER_US * 1e-6)
