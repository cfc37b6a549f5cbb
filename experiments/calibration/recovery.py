"""Truths drawn, data simulated, fits in one call: do 90 % intervals hold the truth 90 % of the time?

Links: latency and bandwidth from 20 sizes with 5 % scatter. Jitter: a rank's law from step times alone, 100 at each of 8, 64
and 512 ranks. Congestion: from times of the slowest alone, 400 each of 1, 4 and 16 groups of 8 ranks whose link is shared, how often
it is congested and by what factor, beside the law of a rank.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array
from scipy import stats

from mc.calibration.descent import descend
from mc.calibration.least_squares import least_squares
from mc.calibration.steps import StepData, law_of, names_of, natural, step_loss

LEVEL = 0.9
RANKS, STEPS = (8, 64, 512), 100
GROUP, GROUPS, CALLS = 8, (1, 4, 16), 400
# Centres and spreads of the truths: logarithms, log-odds of the probability, logarithm of the factor beyond 1.
_CONGESTION = {
    "median": (0.0, 0.3),
    "sigma": (float(np.log(0.05)), 0.3),
    "probability": (float(np.log(0.1 / 0.9)), 0.3),
    "factor": (float(np.log(0.5)), 0.3),
}


@dataclass(frozen=True)
class Coverage:
    """How often intervals held a parameter.

    Attributes:
        what: was fitted.
        parameter: its name.
        replications: how many fits.
        covered: part of them.
    """

    what: str
    parameter: str
    replications: int
    covered: float


def coverages(replications: int) -> list[Coverage]:
    """All of them."""
    with jax.enable_x64(True):
        found = [("link", links(replications), ("latency", "bandwidth"))]
        found += [
            ("jitter", jitter(replications, family, slow=slow), names_of(family, slow=slow))
            for family, slow in (("lognormal", False), ("exponential", False))
        ]
        found.append(("congestion", congestion(replications), tuple(_CONGESTION)))
    return [
        Coverage(what, name, replications, float(inside[:, place].mean()))
        for what, inside, names in found
        for place, name in enumerate(names)
    ]


def links(replications: int) -> np.ndarray:
    """Whether each interval of each fit holds the truth."""
    generator = np.random.default_rng(5)
    sizes, start = np.logspace(1, 9, 20), np.log([5e-6, 1 / 20e9])
    truth = generator.normal(size=(replications, 2))

    def times(z):
        values = jnp.exp(jnp.asarray(start) + 0.7 * z)
        return jnp.log(values[0] + values[1] * sizes)

    def residuals(z, measured):
        return jnp.concatenate([(times(z) - measured) / 0.05, z])

    measured = jax.vmap(times)(jnp.asarray(truth)) + 0.05 * generator.normal(size=(replications, 20))
    found = jax.jit(lambda z, data: least_squares(residuals, z, data, steps=50, data_axes=0))(
        jnp.zeros((replications, 2)), measured
    )
    return _inside(np.asarray(found.point), np.asarray(found.normal), truth)


def jitter(replications: int, family: str, *, slow: bool) -> np.ndarray:
    """Whether each interval of each fit holds the truth, from step times alone."""
    generator = np.random.default_rng(6)
    names = names_of(family, slow=slow)
    truth = 0.3 * generator.normal(size=(replications, len(names)))
    ranks = np.repeat(RANKS, STEPS).astype(float)
    uniform = generator.uniform(size=(replications, len(ranks)))

    def draw(z, level):
        from_one = natural(names, z, 1.0)
        law = law_of(family, from_one)
        # The slowest of n: log F = log u / n, exactly.
        return law.quantile(jnp.log(-jnp.expm1(jnp.log(level) / ranks)))

    times = jax.vmap(draw)(jnp.asarray(truth), jnp.asarray(uniform))
    # The shift is a share of a known time, so that its coordinate means the same in every replication.
    data = StepData(times, jnp.broadcast_to(ranks, times.shape), jnp.ones(replications))
    axes = StepData(0, 0, 0)  # pyright: ignore[reportArgumentType]
    loss = step_loss(family, names)
    found = jax.jit(lambda z, data: descend(loss, z, data, data_axes=axes))(jnp.zeros(truth.shape), data)
    return _inside(np.asarray(found.point), np.asarray(found.hessian), truth)


def congestion(replications: int) -> np.ndarray:
    """Whether each interval of each fit holds the truth, from times of the slowest alone."""
    generator = np.random.default_rng(8)
    centers, spreads = np.array(list(_CONGESTION.values())).T
    truth = generator.normal(size=(replications, len(centers)))
    median, sigma, probability, beyond = np.exp(centers + spreads * truth).T[..., None, None]
    groups = np.repeat(GROUPS, CALLS)
    times = np.zeros((replications, len(groups)))
    for count in GROUPS:
        shape = (replications, CALLS, count)
        # The slowest of a group: log F = log u / ranks, exactly.
        level = generator.uniform(size=shape) ** (1 / GROUP)
        congested = generator.uniform(size=shape) < probability / (1 + probability)
        own = median * np.exp(sigma * stats.norm.ppf(level)) * np.where(congested, 1 + beyond, 1.0)
        times[:, groups == count] = own.max(-1)

    def loss(z, data):
        x = jnp.asarray(centers) + jnp.asarray(spreads) * z
        return jnp.sum(z**2) / 2 - jnp.sum(congested_density(x, data, jnp.asarray(groups, float)))

    found = jax.jit(lambda z, data: descend(loss, z, data, data_axes=0))(
        jnp.zeros(truth.shape), jnp.asarray(times)
    )
    return _inside(np.asarray(found.point), np.asarray(found.hessian), truth)


def congested_density(x: Array, times: Array, groups: Array) -> Array:
    """Log density of the slowest of some groups whose links are congested at random.

    A group's law is F = Σ πₖ Φ(log(t/(cₖ m))/σ)ᵍ; of G groups it is Fᴳ.

    Args:
        x: logarithm of the median m and of σ, log-odds of π₁, logarithm of c₁ − 1.
        times: of the slowest.
        groups: how many each waited for.
    """
    sigma = jnp.exp(x[1])
    states = jnp.stack([jnp.zeros(()), jnp.log1p(jnp.exp(x[3]))])
    shares = jnp.stack([jax.nn.log_sigmoid(-x[2]), jax.nn.log_sigmoid(x[2])])
    z = (jnp.log(times)[None] - x[0] - states[:, None]) / sigma
    rank = norm.logcdf(z)
    cdf = logsumexp(shares[:, None] + GROUP * rank, axis=0)
    slope = jnp.log(GROUP) + (GROUP - 1) * rank + norm.logpdf(z) - jnp.log(sigma * times)[None]
    return jnp.log(groups) + (groups - 1) * cdf + logsumexp(shares[:, None] + slope, axis=0)


def _inside(points: np.ndarray, curvature: np.ndarray, truth: np.ndarray) -> np.ndarray:
    width = stats.norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2))
    return np.abs(points - truth) < width
