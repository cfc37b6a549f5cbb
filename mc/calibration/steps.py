"""The jitter of one rank from step times alone: the likelihood of the maximum.

A step ends when the slowest of n ranks does, so a step time has the density log n + (n − 1)·log F(t) + log f(t) with the law F
of one rank. Steps at several n see different parts of its tail, and the whole is fitted: a family of delays, and
optionally a share of calls that are slower by a factor. Everything comes from log survival, so it is exact far out.

Where a law can be drawn from but has no density, `crps` scores draws against measurements (Gneiting, Raftery 2007): 0 for a certain
forecast that comes true, in the unit of the times, least in expectation for the true law.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mc.calibration.descent import descend
from mc.calibration.errors import CalibrationError
from mc.delays import AbstractDelay, Exponential, Lognormal, Mixture, Scaled, Shifted, Slowest, Weibull

# Family -> names of its parameters; times are in units of the typical step time, `shift` of the least one.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "lognormal": ("median", "sigma"),
    "exponential": ("shift", "mean"),
    "weibull": ("shift", "scale", "shape"),
}
SLOW = ("fraction", "slowdown")
_SHARES = ("shift", "fraction")
# A weak prior, in log or log-odds: it only keeps what data leave free from running off.
_SPREAD = 3.0
_GUESSES = {
    "median": 1.0,
    "sigma": 0.05,
    "shift": 0.9,
    "mean": 0.05,
    "scale": 0.05,
    "shape": 1.0,
    "fraction": 0.02,
    "slowdown": 0.2,
}
_TIMES = ("median", "shift", "mean", "scale")
_LEAST_ROWS = 10


@dataclass(frozen=True)
class StepSeries:
    """Step times of one cluster size.

    Attributes:
        ranks: that wait for each other.
        times: seconds.
    """

    ranks: int
    times: NDArray[np.float64]


class StepData(NamedTuple):
    """Times in units of the typical one, the ranks that each is the slowest of, and the least time."""

    times: Float[Array, " rows"]
    ranks: Float[Array, " rows"]
    least: Float[Array, ""]


@dataclass(frozen=True)
class StepFit:
    """One rank's law, from the slowest of many.

    Attributes:
        family: of the law.
        names: of the parameters.
        values: fitted, times in seconds; `slowdown` is the factor beyond 1.
        low: ends of 90 % intervals (Laplace).
        high: likewise.
        law: one rank's step time.
        log_likelihood: of all step times.
        gradient: largest entry of the loss's gradient at the optimum.
        losses: of all starts, the least first.
    """

    family: str
    names: tuple[str, ...]
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    law: AbstractDelay
    log_likelihood: float
    gradient: float
    losses: NDArray[np.float64]

    @property
    def criterion(self) -> float:
        """Akaike's: less is better; families are compared by it."""
        return 2 * len(self.names) - 2 * self.log_likelihood

    def quantile(self, ranks: int, level: ArrayLike) -> NDArray[np.float64]:
        """Step times of so many ranks at levels such as 0.99."""
        with jax.enable_x64(True):
            return np.asarray(Slowest(self.law, float(ranks)).quantile(jnp.log1p(-jnp.asarray(level, float))))


def names_of(family: str, *, slow: bool) -> tuple[str, ...]:
    """The parameters of a family, with those of slow calls."""
    if family not in FAMILIES:
        raise CalibrationError(f"expected a family of {', '.join(FAMILIES)}; got {family}")
    return FAMILIES[family] + (SLOW if slow else ())


def natural(names: Sequence[str], z: Float[Array, " parameters"], least: Any) -> dict[str, Array]:
    """Values of coordinates: logarithms of positive numbers, log-odds of shares; `shift` is a share of the least time."""
    found = {}
    for place, name in enumerate(names):
        guess = _GUESSES[name]
        if name in _SHARES:
            found[name] = jax.nn.sigmoid(np.log(guess / (1 - guess)) + z[place])
        else:
            found[name] = guess * jnp.exp(z[place])
    if "shift" in found:
        found["shift"] = found["shift"] * least
    return found


def law_of(family: str, values: Mapping[str, Any]) -> AbstractDelay:
    """One rank's law; traceable."""
    law: AbstractDelay
    if family == "lognormal":
        law = Lognormal(values["median"], values["sigma"])
    elif family == "exponential":
        law = Shifted(Exponential(values["mean"]), values["shift"])
    else:
        law = Shifted(Weibull(values["scale"], values["shape"]), values["shift"])
    if "fraction" not in values:
        return law
    fraction = jnp.asarray(values["fraction"])
    return Mixture(jnp.stack([1 - fraction, fraction]), (law, Scaled(law, 1 + values["slowdown"])))


def log_density_of_slowest(law: AbstractDelay, times: Array, ranks: Array) -> Array:
    """Log n + (n − 1)·log F + log f."""
    log_cdf = jnp.maximum(law.log_cdf(times), -1e6)
    return jnp.log(ranks) + (ranks - 1) * log_cdf + jnp.maximum(law.log_density(times), -1e6)


def step_loss(family: str, names: tuple[str, ...]) -> Any:
    """Minus the log posterior of coordinates, as a function of them and `StepData`."""

    def loss(z: Array, data: StepData) -> Array:
        law = law_of(family, natural(names, z, data.least))
        return -jnp.sum(log_density_of_slowest(law, data.times, data.ranks)) + jnp.sum((z / _SPREAD) ** 2) / 2

    return loss


def fit_steps(
    series: Sequence[StepSeries],
    family: str = "lognormal",
    *,
    slow: bool = False,
    starts: int = 8,
    seed: int = 0,
) -> StepFit:
    """Fits one rank's law to step times at one or several cluster sizes.

    Args:
        series: step times with the ranks that waited for each other.
        family: of `FAMILIES`.
        slow: whether a share of calls may be slower by a factor.
        starts: how many descents.
        seed: of the starts.

    Raises:
        CalibrationError: too few times, or times that are not random.
    """
    names = names_of(family, slow=slow)
    data, unit = step_data(series)
    with jax.enable_x64(True):
        loss = step_loss(family, names)
        drawn = np.random.default_rng(seed).normal(size=(max(starts, 1) - 1, len(names)))
        first = jnp.asarray(np.concatenate([np.zeros((1, len(names))), drawn]))
        on_device = StepData(*(jnp.asarray(each) for each in data))
        found = jax.jit(lambda z: descend(loss, z, on_device))(first)
        losses = np.where(np.isfinite(found.loss), found.loss, np.inf)
        best = int(np.argmin(losses))
        if not np.isfinite(losses[best]):
            raise CalibrationError(
                f"expected step times that a {family} law can have; its likelihood is 0 everywhere"
            )
        z = np.asarray(found.point[best])
        width = stats.norm.ppf(0.95) * np.sqrt(
            np.maximum(np.diag(np.linalg.pinv(np.asarray(found.hessian[best]))), 0)
        )
        scale = np.array([unit if name in _TIMES else 1.0 for name in names])

        def shown(at: NDArray[np.float64]) -> NDArray[np.float64]:
            values = natural(names, jnp.asarray(at), on_device.least)
            return scale * np.array([float(values[name]) for name in names])

        values = shown(z)
        prior = float(np.sum((z / _SPREAD) ** 2) / 2)
        rows = len(data.times)
        return StepFit(
            family,
            names,
            values,
            shown(z - width),
            shown(z + width),
            law_of(family, dict(zip(names, values.tolist(), strict=True))),
            prior - losses[best] - rows * float(np.log(unit)),
            float(found.gradient[best]),
            np.sort(losses),
        )


def step_data(series: Sequence[StepSeries]) -> tuple[Any, float]:
    """All times in units of the typical one, and that unit in seconds."""
    times = np.concatenate([np.asarray(each.times, float) for each in series]) if series else np.zeros(0)
    if len(times) < _LEAST_ROWS:
        raise CalibrationError(f"expected {_LEAST_ROWS} step times or more; got {len(times)}")
    if not np.all(np.isfinite(times)) or np.any(times <= 0):
        raise CalibrationError(
            f"expected step times above 0; got {times[~(np.isfinite(times) & (times > 0))][0]:g}"
        )
    if np.ptp(times) == 0:
        raise CalibrationError(f"expected step times that vary; got {times[0]:g} s for all {len(times)}")
    for each in series:
        if each.ranks < 1:
            raise CalibrationError(f"expected at least one rank; got {each.ranks}")
    unit = float(np.median(times))
    ranks = np.concatenate([np.full(len(each.times), float(each.ranks)) for each in series])
    return StepData(times / unit, ranks, np.asarray(times.min() / unit)), unit  # pyright: ignore[reportArgumentType]


def crps(draws: NDArray[np.float64], measured: NDArray[np.float64]) -> float:
    """Mean continuous ranked probability score of measurements under a law known by draws: E|X − y| − E|X − X′|/2."""
    ordered = np.sort(draws)
    count = len(ordered)
    spread = 2 * np.sum((2 * np.arange(1, count + 1) - count - 1) * ordered) / count**2
    distance = np.mean([np.abs(ordered - each).mean() for each in np.ravel(measured)])
    return float(distance - spread / 2)
