"""Truths drawn, data simulated, fits in one call: do 90 % intervals hold the truth 90 % of the time?

Links: latency and bandwidth from 20 sizes with 5 % scatter. Jitter: a rank's law from step times alone, 100 at each of 8, 64
and 512 ranks. Congestion: from times of single calls, 400 each of 2, 4 and 16 groups of 8 ranks whose link is shared, how often
it is congested and by what factor, beside the jitter of a rank and with idle times that are not known.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from mc.calibration import CallSeries
from mc.calibration.call_fit import CallFitting
from mc.calibration.call_model import FACTOR_SPREAD, CallModel
from mc.calibration.choose import chosen
from mc.calibration.descent import descend
from mc.calibration.least_squares import least_squares
from mc.calibration.steps import StepData, law_of, names_of, natural, step_loss
from mc.config import ClusterConfig
from mc.config.calibration import FreeConfig

LEVEL = 0.9
RANKS, STEPS = (8, 64, 512), 100
# Calls of so many ranks, 8 of which share a link.
CALLED, CALLS, SIZE = (16, 32, 128), 400, 2.0**24
_LINK = {"bandwidth": "20 GB/s", "duplex": "each", "latency": "5 us"}
_STATES = [
    {"name": "free", "probability": 0.9},
    {"name": "busy", "probability": 0.1, "slowdown": 1.5},
]
NOISY = ClusterConfig.model_validate(
    {
        "name": "noisy",
        "chip": {"peak": {}},
        "tiers": [
            {"name": "node", "fan_out": 8, "link": _LINK},
            {
                "name": "net",
                "fan_out": 16,
                "link": _LINK,
                "jitter": {"family": "lognormal", "median": "50 us", "sigma": 0.5},
                "congestion": {"shared_by": "node", "states": _STATES},
            },
        ],
    }
)
_BUSY = "tiers.net.congestion.states.busy"
CONGESTION = {
    "probability": f"{_BUSY}.probability",
    "slowdown": f"{_BUSY}.slowdown",
    "median of jitter": "tiers.net.jitter.median",
    "sigma of jitter": "tiers.net.jitter.sigma",
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
        found.append(("congestion", congestion(replications), tuple(CONGESTION)))
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
    """Whether each interval of each fit holds the truth, from times of single calls."""
    generator = np.random.default_rng(8)
    # Times are simulated; in their place idle ones, near which factors of series are believed to be.
    series = []
    for ranks in CALLED:
        idle = 2 * (ranks - 1) * (5e-6 + SIZE / ranks / 20e9)
        blank = idle * np.linspace(1, 1.001, CALLS)
        series.append(CallSeries("all-reduce", ranks, ("ring",), "auto", SIZE, blank))
    free = [FreeConfig(path=path, spread=0.3) for path in CONGESTION.values()]
    model = CallModel(NOISY, chosen(NOISY, free), tuple(series))
    count = len(model.parameters)
    truth = generator.normal(size=(replications, model.size))
    truth[:, count:] = (0.1 * truth[:, count:] - model.centers) / FACTOR_SPREAD
    levels = generator.uniform(size=(replications, len(series), CALLS))

    def simulated(z, level):
        return jnp.diagonal(jax.vmap(lambda own: model.quantiles(z, own))(level), axis1=0, axis2=1).T

    times = np.asarray(jax.lax.map(lambda each: jax.jit(simulated)(*each), (jnp.asarray(truth), levels)))
    fitting = CallFitting(model)
    inside = []
    for own, true in zip(times, truth, strict=True):
        data = model.data(list(own))
        best = fitting.descents(data, 1, 100, 0, lambda label, loss: None)[0].point
        covariance, _ = fitting.uncertainty(best, data)
        width = stats.norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.diag(covariance))
        inside.append(np.abs(best - true) < width)
    return np.array(inside)[:, :count]


def _inside(points: np.ndarray, curvature: np.ndarray, truth: np.ndarray) -> np.ndarray:
    width = stats.norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2))
    return np.abs(points - truth) < width
