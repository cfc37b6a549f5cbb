"""A fit of an experiment to step times: the most likely figures, how well they are known, and what they say of runs held out.

The loss is minus the log posterior in coordinates z in which priors are standard normal (`parameters.py`). Descents go in
coordinates in which its valleys are straight (`step_coordinates.py`), and in these uncertainty is Laplace's: the inverse of
the observed information, second derivatives with the priors included. All in double precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from mc.calibration.convergence import Convergence
from mc.calibration.errors import CalibrationError
from mc.calibration.fitted import LEVEL, Report
from mc.calibration.identify import Identified, identify
from mc.calibration.parameters import Parameters
from mc.calibration.step_coordinates import StepCoordinates
from mc.calibration.step_counts import Counts
from mc.calibration.step_descent import (
    LAST_STEPS,
    LOOKED_AT,
    NOTHING,
    apart,
    covariance_of,
    curvature_of,
    descents,
)
from mc.calibration.step_model import StepModel, StepRun
from mc.calibration.step_runs import thinned
from mc.calibration.step_scores import SHOWN, RunScore, check_runs, scored
from mc.calibration.step_starts import check_guess, places_of
from mc.calibration.step_valley import Valley, drawn_of, valley_along
from mc.calibration.step_words import Told, sentences_of
from mc.config import ExperimentConfig

# Per step: beyond it a law has no such time.
_IMPOSSIBLE = 1e4
_MODEL_DRAWS = 60
_INTERVAL_DRAWS = 4000
# Figures are nearly as likely where the log posterior is less by no more.
_NEARLY = 3.0
# Standard deviations of the prior of a slowdown.
_ALONG = 1.2


@dataclass(frozen=True)
class StepsFit:
    """A calibrated experiment.

    Attributes:
        config: before the fit.
        parameters: what was free.
        z: where the fit ended, in standardised coordinates.
        own_covariance: of the posterior there, in the coordinates of the descent.
        scores: of every run, those held out last.
        log_likelihood: of all steps that were fitted.
        convergence: how it ended.
        others: where other descents ended whose figures are nearly as likely: by how much less in the logarithm, and coordinates.
        measured: how many steps there were, which may be more than were fitted.
        valleys: the posterior along the slowdown of slow chips, through the best figures and the others; none if it is not free.
        healthy: the greatest chance of a fitted run that it has no slow chip, where chips may be slow.
    """

    config: ExperimentConfig
    parameters: Parameters
    z: NDArray[np.float64]
    own_covariance: NDArray[np.float64]
    scores: tuple[RunScore, ...]
    log_likelihood: float
    convergence: Convergence
    others: tuple[tuple[float, NDArray[np.float64]], ...] = ()
    measured: int = 0
    valleys: tuple[Valley, ...] = ()
    healthy: float | None = None

    @property
    def calibrated(self) -> ExperimentConfig:
        """The experiment with the fitted figures."""
        with jax.enable_x64(True):
            return self.parameters.settled(self.config, self.z)

    @property
    def coordinates(self) -> StepCoordinates:
        """Of the descent."""
        return StepCoordinates(self.parameters)

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """Of the posterior in standardised coordinates, around the fit."""
        if self.valleys:
            return np.atleast_2d(np.cov(self.drawn(_INTERVAL_DRAWS), rowvar=False))
        with jax.enable_x64(True):
            own = self.coordinates
            bent = np.asarray(jax.jacfwd(own.back)(own.of(jnp.asarray(self.z))))
        return bent @ self.own_covariance @ bent.T

    def drawn(self, count: int) -> NDArray[np.float64]:
        """Draws of the posterior, standardised coordinates [count, parameters]."""
        with jax.enable_x64(True):
            own = self.coordinates
            if self.valleys:
                return np.asarray(own.back(jnp.asarray(drawn_of(self.valleys, count))))
            middle = np.asarray(own.of(jnp.asarray(self.z)))
            normal = np.random.default_rng(0).multivariate_normal(
                middle, self.own_covariance, size=count, method="eigh"
            )
            return np.asarray(own.back(jnp.asarray(normal)))

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Low, fitted and high of every parameter, in SI units; columns in this order."""
        with jax.enable_x64(True):
            found = self.parameters.interval(self.z, self.covariance, level)
            bent = list(range(len(self.parameters))) if self.valleys else self.coordinates.moved
            if bent:
                values = np.asarray(self.parameters.values(jnp.asarray(self.drawn(_INTERVAL_DRAWS))))
                ends = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
                found[bent, 0] = np.minimum(ends[0], found[:, 1])[bent]
                found[bent, 2] = np.maximum(ends[1], found[:, 1])[bent]
            return found

    @cached_property
    def known(self) -> Identified:
        """What the data tell apart."""
        return identify(self.covariance)

    def sentences(self) -> list[str]:
        """The same for people."""
        return sentences_of(
            Told(
                self.parameters,
                self.coordinates,
                self.covariance,
                self.known,
                self.valleys,
                self.healthy,
                self.others,
                sum(len(each.run.times) for each in self.scores),
                self.measured,
            )
        )

    def counts(self, runs: Sequence[StepRun], held_out: NDArray[np.bool_]) -> Counts:
        """The chances of numbers of slow chips of each run; the chips of a run are known as far as it was seen."""
        with jax.enable_x64(True):
            model, z = self._model(runs), jnp.asarray(self.z)
            measured = jax.jit(model.with_counts)(z, [jnp.asarray(run.times) for run in runs])
            pairs = zip(model.counts_of_nobody(z), measured, strict=True)
            return Counts(*(jnp.where(held_out[:, None], new, seen) for new, seen in pairs))

    def quantiles(
        self, runs: Sequence[StepRun], counts: Counts, levels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Step times of runs with such numbers of slow chips at some levels, [runs, levels], seconds."""
        with jax.enable_x64(True):
            return np.asarray(self._model(runs).quantiles(jnp.asarray(self.z), jnp.asarray(levels), counts))

    def _model(self, runs: Sequence[StepRun]) -> StepModel:
        return StepModel(self.config, self.parameters, tuple(run.ranks for run in runs))

    def forecast(self, ranks: Sequence[int], level: float = LEVEL) -> NDArray[np.float64]:
        """Step times of other numbers of ranks, [ranks, `SHOWN`, (low, fitted, high)], seconds.

        The ends are quantiles over draws of the posterior: what is not known of the figures, and nothing of the model.

        Raises:
            CalibrationError: the cluster has fewer.
        """
        with jax.enable_x64(True):
            model = StepModel(self.config, self.parameters, tuple(ranks))
            found = np.stack(
                [
                    model.quantiles(each, jnp.array(SHOWN), model.counts_of_nobody(each))
                    for each in map(jnp.asarray, (self.z, *self.drawn(_MODEL_DRAWS)))
                ]
            )
        low, high = np.quantile(found[1:], [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return np.stack([np.minimum(low, found[0]), found[0], np.maximum(high, found[0])], axis=-1)


def fit_runs(
    config: ExperimentConfig,
    runs: Sequence[StepRun],
    parameters: Parameters,
    *,
    held_out: Sequence[StepRun] = (),
    starts: int = 4,
    steps: int = 100,
    seed: int = 0,
    report: Report | None = None,
) -> StepsFit:
    """Fits figures of an experiment to step times by the likelihood of the slowest rank.

    Args:
        config: the experiment; where the priors are centred unless parameters say otherwise.
        runs: each of one job on one set of chips, with its own number of ranks.
        parameters: what is free.
        held_out: runs that are only scored.
        starts: how many descents.
        steps: at most so many iterations each.
        seed: of the starts.
        report: is told of every descent.

    Raises:
        CalibrationError: times that are none, too few, or that the experiment cannot have.
    """
    check_runs([*runs, *held_out])
    measured = sum(len(run.times) for run in (*runs, *held_out))
    runs, held_out = (thinned(each) for each in (runs, held_out))
    with jax.enable_x64(True):
        model = StepModel(config, parameters, tuple(run.ranks for run in runs))
        times = [jnp.asarray(run.times) for run in runs]
        own = StepCoordinates(parameters)

        def loss(y: Any) -> Any:
            z = own.back(y)
            return -jnp.sum(model.log_likelihood(z, times)) + jnp.sum(z**2) / 2

        def both(y: Any) -> tuple[Any, Any]:
            slope, value = jax.jacfwd(lambda at: (loss(at),) * 2, has_aux=True)(y)
            return value, slope

        evaluate = jax.jit(both)

        def value_and_slope(y: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, slope = evaluate(jnp.asarray(y))
            finite = bool(np.isfinite(value)) and bool(np.isfinite(slope).all())
            return (float(value), np.asarray(slope)) if finite else (NOTHING, np.zeros(len(y)))

        places = places_of(config, runs, own, LOOKED_AT * starts, seed)
        heights = np.nan_to_num(np.asarray(jax.jit(lambda ys: jax.lax.map(loss, ys))(places)), nan=NOTHING)
        first = places[np.argsort(heights, kind="stable")[:starts]]
        told = report or (lambda _, x: None)
        ends = descents(value_and_slope, first, steps, told)
        if own.moved:
            # Along the valley, for another bottom of it.
            along = np.array([[_ALONG], [-_ALONG]]) * (np.arange(len(parameters)) == own.slowdown)
            more = descents(value_and_slope, ends[0].point + along, steps, told, near=True)
            ends = sorted([*ends, *more], key=lambda each: each.loss)
        best, height, taken = ends[0]
        if not height < _IMPOSSIBLE * sum(len(run.times) for run in runs):
            raise CalibrationError(
                "expected step times that the experiment can have; they are impossible under all figures tried: check the "
                "model's compute time, units and ranks"
            )
        check_guess(own, own.back(jnp.asarray(best)), runs)
        _, slope = value_and_slope(best)
        bent = np.asarray(jax.jacfwd(own.back)(jnp.asarray(best)))
        z = np.asarray(own.back(jnp.asarray(best)))
        covariance = covariance_of(curvature_of(value_and_slope, best), bent.T @ bent)
        valleys: list[Valley] = []
        others: list[tuple[float, NDArray[np.float64]]] = []
        for each in (ends[0], *apart(ends, covariance, _NEARLY)):
            if any(valley.holds(each.point, each.loss) for valley in valleys):
                continue
            if own.slowdown is not None:
                valleys.append(valley_along(value_and_slope, each.point, covariance, own.slowdown))
            if each is not ends[0]:
                others.append((each.loss - height, np.asarray(own.back(jnp.asarray(each.point)))))
        found = StepsFit(
            config,
            parameters,
            z,
            covariance,
            (),
            -(height - float(np.sum(z**2) / 2)),
            Convergence(
                np.array([each.loss for each in ends]),
                float(np.abs(slope).max()),
                taken,
                taken < steps + LAST_STEPS,
            ),
            tuple(others),
            measured,
            tuple(valleys),
        )
    every, is_held = [*runs, *held_out], [False] * len(runs) + [True] * len(held_out)
    counts = found.counts(every, np.array(is_held))
    scores = scored(every, is_held, lambda runs, _, levels: found.quantiles(runs, counts, levels))
    return replace(found, scores=tuple(scores), healthy=_healthy(counts, len(runs)))


def _healthy(counts: Counts, runs: int) -> float:
    """The greatest chance of the first so many runs that they have no slow chip."""
    numbers, chances = (np.asarray(each)[:runs] for each in counts)
    none = logsumexp(np.where(numbers == 0, chances, -np.inf), axis=1)
    return float(np.exp(none - logsumexp(chances, axis=1)).max())
