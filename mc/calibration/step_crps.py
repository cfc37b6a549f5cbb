"""A fit of an experiment to step times that have no likelihood: where ranks share noise, or links remember their states.

Such steps can be drawn, and draws are scored by the continuous ranked probability score (Gneiting, Raftery, *JASA* 102, 2007),

    E|X − y| − E|X − X′|/2,

least in expectation for the law that y has. Draws x are those of `tailstep run`, under random numbers that stay as they are from one
set of figures to the next (`mc.experiment.steps_under`), so the score is smooth but where draws change order; of m draws the second
mean is that of all pairs, Σ(2i − m − 1)·x₍ᵢ₎/(m(m − 1)), which has no bias. Scores are in units of those that measured steps have
among themselves, and priors count beside them as beside a likelihood.

Descents are Optax's Adam, then scipy's L-BFGS from where that has come to, from several starts.

Intervals are those of estimating equations by blocks of consecutive steps, as for single calls (`call_fit.py`); as draws are random
too, G of n steps is (1 + n/m)^½ times larger. Second derivatives are differences over half a standard deviation: those at a point
are 0, since |x − y| bends nowhere but at y.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy import optimize

from mc.calibration.call_fit import BLOCKS, estimating
from mc.calibration.convergence import Convergence
from mc.calibration.errors import CalibrationError
from mc.calibration.fitted import LEVEL, Fitted, Report
from mc.calibration.parameters import Parameters, short_name
from mc.calibration.step_descent import LOOKED_AT, NOTHING, curvature_of
from mc.calibration.step_draws import DrawnModel
from mc.calibration.step_model import StepRun, check_barrier
from mc.calibration.step_runs import thinned
from mc.calibration.step_scores import SHOWN, RunScore, check_runs, scored
from mc.config import ExperimentConfig
from mc.experiment.build import compute_time

Floats = NDArray[np.float64]
# Steps that are drawn for what is said of a fit.
_SHOWN_DRAWS = 8192
_MODEL_DRAWS = 60
_TIME, _EFFICIENCY = "model.compute.time", "model.compute.efficiency"
# What a rank computes, over the least median of a run, where descents may begin.
_NEAR = (0.4, 1.0)
# Of what a figure is known to, the distance of differences, and its ends in standard deviations of the priors.
_PART, _REACH = 0.5, (1e-4, 0.3)
# Of `curvature_of`.
_STEP = 1e-3
# Steps of Adam, before those of L-BFGS, and their rate in standard deviations of the priors.
_ADAM, _RATE = 150, 0.05


@dataclass(frozen=True)
class DrawnFit(Fitted[ExperimentConfig]):
    """An experiment calibrated by the score of its draws.

    Attributes:
        scores: of every run, those held out last.
        score: mean of all fitted steps, in units of what they have among themselves; 1 is as good as can be.
    """

    scores: tuple[RunScore, ...]
    score: float

    def sentences(self) -> list[str]:
        """The same for people."""
        names = [short_name(each) for each in self.parameters.items]
        return [
            f"Scored by CRPS, as there is no likelihood where ranks share noise or links remember: {self.score:.3f} of what "
            "measured steps have among themselves. Intervals are those of estimating equations by blocks of steps.",
            *self.known.sentences(names),
        ]

    def quantiles(self, runs: Sequence[StepRun], held_out: NDArray[np.bool_], levels: Floats) -> Floats:
        """Step times of runs at some levels, [runs, levels], seconds."""
        del held_out
        return self._drawn_quantiles([run.ranks for run in runs], self.z[None], levels)[0]

    def forecast(self, ranks: Sequence[int], level: float = LEVEL) -> Floats:
        """Step times of other numbers of ranks, [ranks, `SHOWN`, (low, fitted, high)], seconds.

        The ends are quantiles over draws of what is not known of the figures, and hold nothing of the model.
        """
        generator = np.random.default_rng(0)
        drawn = generator.multivariate_normal(self.z, self.covariance, size=_MODEL_DRAWS, method="eigh")
        found = self._drawn_quantiles(ranks, np.concatenate([self.z[None], drawn]), np.array(SHOWN))
        low, high = np.quantile(found[1:], [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return np.stack([np.minimum(low, found[0]), found[0], np.maximum(high, found[0])], axis=-1)

    def _drawn_quantiles(self, ranks: Sequence[int], places: Floats, levels: Floats) -> Floats:
        """[places, ranks, levels], of other random numbers than the fit's."""
        with jax.enable_x64(True):
            model = DrawnModel(self.config, self.parameters, tuple(ranks), _SHOWN_DRAWS, seed=1)
            _ = model.sized
            at = jnp.asarray(levels)
            draw = jax.jit(
                lambda zs: jax.lax.map(
                    lambda z: jnp.stack([jnp.quantile(each, at) for each in model.sorted(z)]), zs
                )
            )
            return np.asarray(draw(jnp.asarray(places)))


def fit_drawn(
    config: ExperimentConfig,
    runs: Sequence[StepRun],
    parameters: Parameters,
    *,
    held_out: Sequence[StepRun] = (),
    starts: int = 4,
    seed: int = 0,
    report: Report | None = None,
) -> DrawnFit:
    """Fits figures of an experiment to step times by the score of its draws.

    Args:
        config: the experiment; where the priors are centred unless parameters say otherwise.
        runs: each with its own number of ranks.
        parameters: what is free.
        held_out: runs that are only scored.
        starts: how many descents.
        seed: of the starts.
        report: is told of their end.

    Raises:
        CalibrationError: times that are none or too few, or figures that change nothing.
    """
    check_runs([*runs, *held_out])
    check_barrier(config, [run.ranks for run in (*runs, *held_out)])
    runs, held_out = (thinned(each) for each in (runs, held_out))
    size = len(parameters)
    with jax.enable_x64(True):
        model = DrawnModel(config, parameters, tuple(run.ranks for run in runs))
        # Before anything is traced.
        _ = model.sized
        times = [jnp.asarray(run.times) for run in runs]

        def loss(z: Any, data: Any) -> Any:
            return sum((jnp.sum(each) for each in model.scores(z, data)), jnp.sum(z**2) / 2)

        evaluate = jax.jit(jax.value_and_grad(loss))

        def value_and_slope(z: Floats) -> tuple[float, Floats]:
            value, slope = evaluate(jnp.asarray(z), times)
            finite = bool(np.isfinite(value)) and bool(np.isfinite(slope).all())
            return (float(value), np.asarray(slope)) if finite else (NOTHING, np.zeros(size))

        places = _places(config, runs, parameters, LOOKED_AT * starts, seed)
        heights = np.array([value_and_slope(place)[0] for place in places])
        first = places[np.argsort(heights, kind="stable")[:starts]]
        ends = [_down(value_and_slope, each) for each in first]
        losses = np.array([float(each.fun) for each in ends])
        done = ends[int(np.argmin(losses))]
        if done.fun >= NOTHING:
            raise CalibrationError("expected steps that can be drawn under some figures; none can")
        z = np.asarray(done.x, np.float64)
        (report or (lambda label, loss: None))("descents", float(done.fun))
        slopes = np.asarray(jax.jit(jax.jacfwd(_block_sums(model, runs)))(jnp.asarray(z), times))
        covariance = _covariance(value_and_slope, z, slopes, parameters)
        steps = sum(len(run.times) for run in runs)
        score = (float(done.fun) - float(z @ z) / 2) / steps
    fit = DrawnFit(
        config=config,
        parameters=parameters,
        z=z,
        covariance=covariance,
        scores=(),
        score=score,
        convergence=Convergence(
            np.sort(losses),
            float(np.abs(done.jac).max()),
            _ADAM + int(done.nit),
            bool(done.success),
        ),
    )
    every, is_held = [*runs, *held_out], [False] * len(runs) + [True] * len(held_out)
    return replace(fit, scores=tuple(scored(every, is_held, fit.quantiles)))


def _down(value_and_slope: Any, start: Floats) -> Any:
    """By Adam and then L-BFGS, one step at a time: a descent in one program, as of likelihoods, takes half a minute to compile."""
    adam = optax.adam(_RATE)
    update = jax.jit(lambda slope, state: adam.update(slope, state))
    point, state = start, adam.init(jnp.asarray(start))
    for _ in range(_ADAM):
        moved, state = update(jnp.asarray(value_and_slope(point)[1]), state)
        point = point + np.asarray(moved)
    options = {"gtol": 0.02, "ftol": 1e-12, "maxiter": 100}
    return optimize.minimize(value_and_slope, point, jac=True, method="L-BFGS-B", options=options)


def _places(
    config: ExperimentConfig, runs: Sequence[StepRun], parameters: Parameters, count: int, seed: int
) -> Floats:
    """Where descents may begin: the priors' centres and draws of them, of half of which computing is scaled to the data."""
    generator, size = np.random.default_rng(seed), len(parameters)
    found = np.concatenate([np.zeros((1, size)), generator.normal(size=(count - 1, size))])
    least = min(float(np.median(run.times)) for run in runs)
    scale = least * generator.uniform(*_NEAR, size=count // 2) / float(compute_time(config))
    for place, item in enumerate(parameters.items):
        if item.paths == (_TIME,):
            found[-(count // 2) :, place] = np.log(scale) / item.spread
        elif item.paths == (_EFFICIENCY,):
            share = np.minimum(item.center / scale, 0.99)
            odds = np.log(share / (1 - share)) - parameters.transform.centers[place]
            found[-(count // 2) :, place] = odds / item.spread
    return found


def _covariance(value_and_slope: Any, z: Floats, slopes: Floats, parameters: Parameters) -> Floats:
    dead = [
        short_name(each) for place, each in enumerate(parameters.items) if np.abs(slopes[:, place]).max() == 0
    ]
    if dead:
        raise CalibrationError(
            f"expected figures that steps depend on; got {', '.join(dead)}, which change nothing that is drawn"
        )
    # Differences over what a figure is known to while all others stay; blocks say about how much that is.
    steep = np.sqrt((slopes**2).sum(axis=0))
    covariance = np.eye(len(z))
    for _ in range(2):
        scale = np.minimum(np.maximum(_PART / np.maximum(steep, 1e-12), _REACH[0]), _REACH[1]) / _STEP

        def stretched(at: Floats, scale: Floats = scale) -> tuple[float, Floats]:
            value, slope = value_and_slope(z + scale * at)
            return value, scale * slope

        bent = curvature_of(stretched, np.zeros(len(z))) / np.outer(scale, scale)
        covariance, _ = estimating(slopes, bent)
        steep = np.sqrt(np.maximum(np.diag(bent), 1.0))
    return covariance


def _block_sums(model: DrawnModel, runs: Sequence[StepRun]) -> Any:
    """A function from coordinates to what blocks of consecutive steps add to the loss, [runs x blocks]; traceable.

    Weighted for draws being random, too.
    """
    counts = [len(run.times) for run in runs]
    blocks = [place * BLOCKS + np.arange(n) * BLOCKS // n for place, n in enumerate(counts)]
    drawn = [cells.realisations * cells.size for _, _, cells in model.sized]
    weights = [np.full(n, np.sqrt(1 + n / m)) for n, m in zip(counts, drawn, strict=True)]

    def sums(z: Any, times: Any) -> Any:
        own = jnp.concatenate(model.scores(z, times)) * np.concatenate(weights)
        return jax.ops.segment_sum(own, jnp.asarray(np.concatenate(blocks)), BLOCKS * len(runs))

    return sums
