"""A fit of links' noise to times of single calls, and how well its figures are known.

Descents begin at the best of many draws of the priors. Uncertainty is that of estimating equations, H⁻¹(ΣGGᵀ + I)H⁻¹, with H the
second derivatives of the loss, G its gradient over blocks of consecutive calls, and I of the priors (Godambe, *Annals of
Mathematical Statistics* 31, 1960; by blocks, since noise comes in episodes: Liang, Zeger, *Biometrika* 73, 1986). Of independent
calls that have the law it is Laplace's H⁻¹; of a score that is no likelihood it is right where H⁻¹ means nothing; and of calls that
depend on each other it is as wide as that says.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from mc.calibration.call_model import CallData, CallModel
from mc.calibration.call_scores import CallScore, scored
from mc.calibration.calls import CallSeries
from mc.calibration.convergence import Convergence
from mc.calibration.errors import CalibrationError
from mc.calibration.fitted import LEVEL, Report
from mc.calibration.parameters import Parameters
from mc.calibration.step_descent import (
    LAST_STEPS,
    NOTHING,
    Descended,
    ValueAndSlope,
    curvature_of,
    descents,
)
from mc.config import ClusterConfig

BLOCKS = 20
# As many calls are fitted at most, evenly spaced ones of each series.
MOST_CALLS = 20_000
# Places that are looked at for every one that a descent begins at.
_LOOKED_AT = 32
# Resolutions of the first descents, parts of a series' range.
_BLURS = (0.1, 0.03, 0.01, 0.0)
# Of these at least so many begin, with so many steps each.
_LEAST_PLACES, _COARSE_STEPS = 8, 60


@dataclass(frozen=True)
class CallsFit:
    """A cluster with calibrated noise of links.

    Attributes:
        config: before the fit.
        parameters: what was free.
        z: where the fit ended, in standardised coordinates: of the parameters, then of the series' own factors.
        joint: covariance of all of them.
        independent: standard deviations of the parameters, had calls been independent and the law right.
        scores: of every series, those held out last.
        closed: whether all that was fitted has a likelihood; else scores were fitted.
        fitted: how many calls the fit looked at.
        calls: how many there were for it.
        convergence: how it ended.
    """

    config: ClusterConfig
    parameters: Parameters
    z: NDArray[np.float64]
    joint: NDArray[np.float64]
    independent: NDArray[np.float64]
    scores: tuple[CallScore, ...]
    closed: bool
    fitted: int
    calls: int
    convergence: Convergence

    @property
    def own(self) -> NDArray[np.float64]:
        """Coordinates of the parameters."""
        return self.z[: len(self.parameters)]

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Of the parameters' coordinates."""
        count = len(self.parameters)
        return self.joint[:count, :count]

    @property
    def calibrated(self) -> ClusterConfig:
        """The cluster with the fitted figures."""
        with jax.enable_x64(True):
            return self.parameters.settled(self.config, self.own)

    @cached_property
    def widened(self) -> float:
        """How many times wider intervals are than those of independent calls, the median of the parameters."""
        return float(np.median(np.sqrt(np.diag(self.covariance)) / self.independent))

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Low, fitted and high of every parameter, in SI units; columns in this order."""
        with jax.enable_x64(True):
            return self.parameters.interval(self.own, self.covariance, level)


def fit_calls(
    config: ClusterConfig,
    series: Sequence[CallSeries],
    parameters: Parameters,
    *,
    held_out: Sequence[CallSeries] = (),
    starts: int = 4,
    steps: int = 100,
    seed: int = 0,
    report: Report | None = None,
) -> CallsFit:
    """Fits figures of links' noise to times of single calls.

    Args:
        config: the cluster; where the priors are centred unless parameters say otherwise.
        series: at least one.
        parameters: what is free.
        held_out: series that are only scored.
        starts: how many descents.
        steps: at most so many iterations each.
        seed: of the starts.
        report: is told of every descent.

    Raises:
        CalibrationError: something else than noise is free, or the cluster has none where calls are booked.
    """
    calls = sum(len(each.times) for each in series)
    thinned = tuple(_thinned(each, -(-calls // MOST_CALLS)) for each in series)
    with jax.enable_x64(True):
        model = CallModel(config, parameters, thinned)
        fitting, data = CallFitting(model), model.data()
        ends = fitting.descents(data, starts, steps, seed, report or (lambda label, loss: None))
        best, height, taken = ends[0]
        if height >= NOTHING:
            raise CalibrationError(
                "expected times that the cluster's noise can have; its loss is finite nowhere: check its figures"
            )
        joint, independent = fitting.uncertainty(best, data)
        _, slope = fitting.at(data)(best)
        scores = scored(model, best, joint, tuple(series), tuple(held_out))
    end = Convergence(
        np.array([each.loss for each in ends]),
        float(np.abs(slope).max()),
        taken,
        taken < steps + min(steps, LAST_STEPS),
    )
    closed = all(model.is_closed(tiers) for tiers in model.structures)
    fitted = sum(len(each.times) for each in thinned)
    count = len(parameters)
    return CallsFit(config, parameters, best, joint, independent[:count], scores, closed, fitted, calls, end)


class CallFitting:
    """Descents of a model's loss and what is known at their end, compiled once for any times."""

    def __init__(self, model: CallModel):
        self.model = model
        self._loss = jax.jit(lambda z, data: jax.value_and_grad(model.loss)(z, data))
        self._slopes = jax.jit(jax.jacfwd(_block_sums(model)))

    def at(self, data: Sequence[CallData]) -> ValueAndSlope:
        """The loss of some times and its slope, as scipy takes them."""

        def value_and_slope(z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, slope = self._loss(jnp.asarray(z), data)
            finite = bool(np.isfinite(value)) and bool(np.isfinite(slope).all())
            return (float(value), np.asarray(slope)) if finite else (NOTHING, np.zeros(len(z)))

        return value_and_slope

    def descents(
        self, data: Sequence[CallData], starts: int, steps: int, seed: int, report: Report
    ) -> list[Descended]:
        """Where descents ended, the best first."""
        count, size = max(starts, _LEAST_PLACES), self.model.size
        drawn = np.random.default_rng(seed).normal(size=(_LOOKED_AT * count - 1, size))
        places = np.concatenate([np.zeros((1, size)), drawn])
        for blur in _BLURS:
            # Through a coarse clock states are near each other, and valleys wide.
            coarse = self.at(self._blurred(data, blur))
            places = np.stack([_coarsely(coarse, each) for each in _best(coarse, places, count)])
        fine = self.at(data)
        return descents(fine, _best(fine, places, starts), steps, report)

    def uncertainty(
        self, z: NDArray[np.float64], data: Sequence[CallData]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The covariance H⁻¹(ΣGGᵀ + I)H⁻¹, no figure less known than its prior; and standard deviations of independent calls."""
        slopes = np.asarray(self._slopes(jnp.asarray(z), data))
        return estimating(slopes, curvature_of(self.at(data), z))

    def _blurred(self, data: Sequence[CallData], blur: float) -> list[CallData]:
        """The data as a clock shows them whose resolution is a part of each series' range."""
        found = []
        for places, own in zip(self.model.structures.values(), data, strict=True):
            ends = np.cumsum([0, *(len(self.model.series[place].times) for place in places)])
            times = [np.asarray(own.times[a:b]) for a, b in itertools.pairwise(ends)]
            ranges = [float(np.subtract(*np.quantile(each, (0.999, 0.001)))) for each in times]
            found.append(own._replace(resolution=jnp.maximum(own.resolution, blur * jnp.asarray(ranges))))
        return found


def estimating(
    slopes: NDArray[np.float64], curvature: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The covariance H⁻¹(ΣGGᵀ + I)H⁻¹, no figure less known than its prior; and standard deviations by H⁻¹ alone.

    Args:
        slopes: G, of what each block of consecutive times adds to the loss, [series x `BLOCKS`, coordinates].
        curvature: H, of the loss with the priors.
    """
    # Series differ, so that blocks are centred within each.
    parts = slopes.reshape(-1, BLOCKS, slopes.shape[1])
    centred = (parts - parts.mean(1, keepdims=True)).reshape(slopes.shape)
    spread = centred.T @ centred * BLOCKS / (BLOCKS - 1) + np.eye(slopes.shape[1])
    values, vectors = np.linalg.eigh(curvature)
    inverse = (vectors / np.maximum(values, 1.0)) @ vectors.T
    found = inverse @ spread @ inverse
    values, vectors = np.linalg.eigh((found + found.T) / 2)
    return (vectors * np.clip(values, 1e-12, 1.0)) @ vectors.T, np.sqrt(np.diag(inverse))


def _thinned(series: CallSeries, step: int) -> CallSeries:
    return series if step == 1 else replace(series, times=series.times[::step])


def _best(value_and_slope: ValueAndSlope, places: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    heights = np.array([value_and_slope(place)[0] for place in places])
    return places[np.argsort(heights, kind="stable")[:count]]


def _coarsely(value_and_slope: ValueAndSlope, start: NDArray[np.float64]) -> NDArray[np.float64]:
    options = {"maxiter": _COARSE_STEPS, "gtol": 1.0}
    return np.asarray(optimize.minimize(value_and_slope, start, jac=True, method="BFGS", options=options).x)


def _block_sums(model: CallModel) -> Callable[[Any, Any], Any]:
    """A function from coordinates and data to what blocks of consecutive calls add to the loss, [series x blocks]; traceable."""
    segments, blocks = list[NDArray[np.int64]](), 0
    for places in model.structures.values():
        for place in places:
            count = len(model.series[place].times)
            segments.append(blocks + np.arange(count) * BLOCKS // count)
            blocks += BLOCKS
    own = np.concatenate(segments)

    def sums(z: Any, data: Any) -> Any:
        return jax.ops.segment_sum(jnp.concatenate(model.scores(z, data)), jnp.asarray(own), blocks)

    return sums
