"""A fit of an experiment to step times: the most likely figures, how well they are known, and what they say of runs held out.

The loss is minus the log posterior in coordinates z in which priors are standard normal (`parameters.py`), and uncertainty is
Laplace's: the inverse of the observed information there, second derivatives in the same coordinates, priors included. They come from
central differences of exact gradients. Likelihoods of maxima have valleys and plateaus (a sigma so small that no time
is possible has no slope), so descents begin at the best of many draws of the priors and not at any; scipy's BFGS and then its trust
regions go down, each from its own place, and how many end at the same loss is said. All in double precision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from mc.calibration.errors import CalibrationError
from mc.calibration.fit import LEVEL, Outcome, Report
from mc.calibration.parameters import Parameters
from mc.calibration.step_model import StepModel, StepRun
from mc.config import ExperimentConfig

ValueAndSlope = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
SHOWN = (0.5, 0.9, 0.99)
# The loss where there is none.
_NOTHING = 1e300
# Per step: beyond it a law has no such time.
_IMPOSSIBLE = 1e4
# Places of the priors that are looked at for every one that a descent begins at.
_LOOKED_AT = 32
# Of the trust region, whose every step takes all second derivatives.
_LAST_STEPS = 15
_STEP = 1e-3
_LEAST_ROWS = 10
# Medians of the runs of one experiment never differ by so much, but milliseconds and seconds do.
_UNITS = 100.0
_MODEL_DRAWS = 60
# Of the fitted distribution that the measured one is held against.
_LEVELS = 256


@dataclass(frozen=True)
class StepsEnd:
    """How descents ended, in units of the log posterior, which priors of standard deviation 1 are part of.

    Attributes:
        losses: of every start, the least first.
        gradient: the largest entry of the loss's gradient at the best.
        steps: of the best.
        ended: whether the best stopped by itself, before its steps ran out.
    """

    losses: NDArray[np.float64]
    gradient: float
    steps: int
    ended: bool

    @property
    def outcome(self) -> Outcome:
        """`flat` where a step as long as a prior is wide would change the loss by next to nothing."""
        return "flat" if self.gradient < 0.1 else "corner" if self.ended else "unfinished"

    @property
    def agreeing(self) -> int:
        """How many starts ended within 0.1 of the least loss."""
        return int(np.sum(self.losses <= self.losses[0] + 0.1))


@dataclass(frozen=True)
class RunScore:
    """How one run came out.

    Attributes:
        run: its step times.
        measured: their quantiles at `SHOWN`, seconds.
        predicted: those of the fit.
        distance: the largest between measured and fitted distribution (Kolmogorov's).
        held_out: whether the fit has not seen it.
    """

    run: StepRun
    measured: NDArray[np.float64]
    predicted: NDArray[np.float64]
    distance: float
    held_out: bool

    @property
    def far(self) -> bool:
        """Whether so large a distance has a chance below 1 % under the fitted law; steps may depend on each other, though."""
        return bool(self.distance > 1.63 / np.sqrt(len(self.run.times)))


@dataclass(frozen=True)
class StepsFit:
    """A calibrated experiment.

    Attributes:
        config: before the fit.
        parameters: what was free.
        z: where the fit ended, in standardised coordinates.
        covariance: of the posterior there.
        scores: of every run, those held out last.
        log_likelihood: of all steps that were fitted.
        convergence: how it ended.
    """

    config: ExperimentConfig
    parameters: Parameters
    z: NDArray[np.float64]
    covariance: NDArray[np.float64]
    scores: tuple[RunScore, ...]
    log_likelihood: float
    convergence: StepsEnd

    @property
    def calibrated(self) -> ExperimentConfig:
        """The experiment with the fitted figures."""
        with jax.enable_x64(True):
            return self.parameters.settled(self.config, self.z)

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Low, fitted and high of every parameter, in SI units; columns in this order."""
        with jax.enable_x64(True):
            return self.parameters.interval(self.z, self.covariance, level)

    def forecast(self, ranks: Sequence[int], level: float = LEVEL) -> NDArray[np.float64]:
        """Step times of other numbers of ranks, [ranks, `SHOWN`, (low, fitted, high)], seconds.

        The ends are quantiles over draws of the posterior: what is not known of the figures, and nothing of the model.

        Raises:
            CalibrationError: the cluster has fewer.
        """
        with jax.enable_x64(True):
            model = StepModel(self.config, self.parameters, tuple(ranks))
            generator = np.random.default_rng(0)
            drawn = generator.multivariate_normal(self.z, self.covariance, size=_MODEL_DRAWS, method="eigh")
            found = np.stack(
                [
                    model.quantiles(each, jnp.array(SHOWN), model.counts_of_nobody(each))
                    for each in map(jnp.asarray, (self.z, *drawn))
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
    with jax.enable_x64(True):
        model = StepModel(config, parameters, tuple(run.ranks for run in runs))
        times = [jnp.asarray(run.times) for run in runs]

        def loss(z: Any) -> Any:
            return -jnp.sum(model.log_likelihood(z, times)) + jnp.sum(z**2) / 2

        def both(z: Any) -> tuple[Any, Any]:
            slope, value = jax.jacfwd(lambda at: (loss(at),) * 2, has_aux=True)(z)
            return value, slope

        evaluate = jax.jit(both)

        def value_and_slope(z: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, slope = evaluate(jnp.asarray(z))
            finite = bool(np.isfinite(value)) and bool(np.isfinite(slope).all())
            return (float(value), np.asarray(slope)) if finite else (_NOTHING, np.zeros(len(z)))

        ends = _descents(value_and_slope, len(parameters), starts, steps, seed, report or (lambda _, x: None))
        best, height, taken = ends[0]
        if not height < _IMPOSSIBLE * sum(len(run.times) for run in runs):
            raise CalibrationError(
                "expected step times that the experiment can have; they are impossible under all figures tried: check the "
                "model's compute time, units and ranks"
            )
        _, slope = value_and_slope(best)
        found = StepsFit(
            config,
            parameters,
            best,
            covariance_of(curvature_of(value_and_slope, best)),
            (),
            -(height - float(np.sum(best**2) / 2)),
            StepsEnd(
                np.array([each[1] for each in ends]),
                float(np.abs(slope).max()),
                taken,
                taken < steps + _LAST_STEPS,
            ),
        )
        scores = scored(found, [*runs, *held_out], [False] * len(runs) + [True] * len(held_out))
    return StepsFit(**{**found.__dict__, "scores": tuple(scores)})


def scored(fit: StepsFit, runs: Sequence[StepRun], held_out: Sequence[bool]) -> list[RunScore]:
    """How well a fit has the distribution of step times of some runs."""
    levels = np.concatenate([SHOWN, (np.arange(_LEVELS) + 0.5) / _LEVELS])
    with jax.enable_x64(True):
        model = StepModel(fit.config, fit.parameters, tuple(run.ranks for run in runs))
        z = jnp.asarray(fit.z)
        # The chips of a run that was fitted are known as far as it shows them.
        seen = np.array(held_out)[:, None]
        measured = jax.jit(model.with_counts)(z, [jnp.asarray(run.times) for run in runs])
        chances = jnp.where(seen, model.counts_of_nobody(z), measured)
        predicted = np.asarray(model.quantiles(z, jnp.asarray(levels), chances))
    found = []
    for run, quantiles, held in zip(runs, predicted, held_out, strict=True):
        count, ahead = len(run.times), np.arange(len(run.times)) / len(run.times)
        # Between 0 and 1 where the curve of quantiles ends.
        ends = (0.0, *levels[len(SHOWN) :], 1.0)
        curve = quantiles[len(SHOWN) :]
        share = np.interp(
            np.sort(run.times), (curve[0] - np.ptp(curve), *curve, curve[-1] + np.ptp(curve)), ends
        )
        distance = max(np.max(share - ahead), np.max(ahead + 1 / count - share))
        measured = np.quantile(run.times, SHOWN)
        found.append(RunScore(run, measured, quantiles[: len(SHOWN)], float(distance), held))
    return found


def check_runs(runs: Sequence[StepRun]) -> None:
    """Refuses times that say nothing.

    Raises:
        CalibrationError: with what is wrong.
    """
    times = np.concatenate([run.times for run in runs]) if runs else np.zeros(0)
    if len(times) < _LEAST_ROWS:
        raise CalibrationError(f"expected {_LEAST_ROWS} step times or more; got {len(times)}")
    for run in runs:
        where = f"{run.source}: " if run.source else ""
        wrong = run.times[~(np.isfinite(run.times) & (run.times > 0))]
        if len(wrong):
            raise CalibrationError(f"{where}expected step times above 0; got {wrong[0]:g}")
        if run.ranks < 1:
            raise CalibrationError(f"{where}expected at least one rank; got {run.ranks}")
        if len(run.times) > 1 and np.ptp(run.times) == 0:
            raise CalibrationError(
                f"{where}expected step times that vary; got {run.times[0]:g} s for all {len(run.times)}"
            )
    middle = [float(np.median(run.times)) for run in runs]
    if max(middle) > _UNITS * min(middle):
        raise CalibrationError(
            f"expected step times of one experiment; their medians go from {min(middle):.3g} to {max(middle):.3g} s: are all in "
            "one unit?"
        )


def _descents(
    value_and_slope: ValueAndSlope, count: int, starts: int, steps: int, seed: int, report: Report
) -> list[tuple[NDArray[np.float64], float, int]]:
    """Where descents ended, at which loss, after how many iterations; the best first."""
    drawn = np.random.default_rng(seed).normal(size=(_LOOKED_AT * max(starts, 1) - 1, count))
    places = np.concatenate([np.zeros((1, count)), drawn])
    heights = np.array([value_and_slope(place)[0] for place in places])
    ends = []
    for start in places[np.argsort(heights, kind="stable")[:starts]]:
        near: Any = optimize.minimize(
            value_and_slope, start, jac=True, method="BFGS", options={"maxiter": steps, "gtol": 0.1}
        )
        done: Any = optimize.minimize(
            value_and_slope,
            near.x,
            jac=True,
            hess=lambda at: curvature_of(value_and_slope, at),
            method="trust-exact",
            options={"maxiter": min(steps, _LAST_STEPS), "gtol": 1e-3},
        )
        ends.append((np.asarray(done.x), float(done.fun), int(near.nit + done.nit)))
        report("descent", float(done.fun))
    return sorted(ends, key=lambda each: each[1])


def curvature_of(value_and_slope: ValueAndSlope, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Second derivatives, by central differences of the slope."""
    rows = []
    for place in range(len(at)):
        step = np.zeros(len(at))
        step[place] = _STEP
        rows.append((value_and_slope(at + step)[1] - value_and_slope(at - step)[1]) / (2 * _STEP))
    found = np.array(rows)
    return (found + found.T) / 2


def covariance_of(curvature: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse; data never make a figure less known than its prior, whatever rounding says."""
    values, vectors = np.linalg.eigh(curvature)
    return (vectors / np.maximum(values, 1.0)) @ vectors.T
