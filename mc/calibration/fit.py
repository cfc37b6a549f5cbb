"""A fit of a cluster to measured curves: from several starts, with its uncertainty and its score on what was held out.

Twice over the same compiled program: on every other size of each curve, to be scored on the rest, and on all; or once,
where a rule keeps rows from the fit (`split_curves`), which is then scored on them. Each
time with a scatter σ of 4 % first, then with the one that the residuals show, and each of these from all
starts at falling temperatures of the smooth minimum. Uncertainty is Laplace's: the posterior is normal around
the optimum, with the inverse of the Gauss–Newton matrix JᵀJ as covariance (the priors are among the residuals, so it
is never singular). Everything is computed in double precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mc.calibration.convergence import Convergence
from mc.calibration.curves import Curve
from mc.calibration.errors import CalibrationError
from mc.calibration.fitted import Fitted, Report
from mc.calibration.held_out import HeldOut, line, score_unseen
from mc.calibration.least_squares import least_squares
from mc.calibration.loss import (
    FIRST_SIGMA,
    CurveData,
    curve_residuals,
    own_scatter,
    predictor,
    size_weights,
)
from mc.calibration.parameters import Parameters
from mc.config import ClusterConfig

TEMPERATURES = (0.1, 0.03, 0.01)
_ENOUGH_TO_HOLD_OUT = 6


@dataclass(frozen=True)
class Fit(Fitted[ClusterConfig]):
    """A calibrated cluster.

    Attributes:
        curves: what was fitted.
        predicted: times of each curve.
        sigma: relative scatter of the measurements around the model.
        weights: of the rows.
        held_out: the score; None where it was not asked for.
        unseen: what a rule kept from the fit.
        forecast: times of each of these.
    """

    curves: tuple[Curve, ...]
    predicted: tuple[NDArray[np.float64], ...]
    sigma: float
    weights: NDArray[np.float64]
    held_out: HeldOut | None
    unseen: tuple[Curve, ...] = ()
    forecast: tuple[NDArray[np.float64], ...] = ()

    @property
    def errors(self) -> tuple[NDArray[np.float64], ...]:
        """predicted/measured − 1 of every row of each curve."""
        return tuple(each / curve.times - 1 for each, curve in zip(self.predicted, self.curves, strict=True))


def fit_curves(
    config: ClusterConfig,
    curves: Sequence[Curve],
    parameters: Parameters,
    *,
    starts: int = 4,
    steps: int = 60,
    seed: int = 0,
    held_out: bool = True,
    unseen: Sequence[Curve] = (),
    report: Report | None = None,
) -> Fit:
    """Fits parameters of a cluster to curves.

    Args:
        config: the cluster; where the priors are centred unless parameters say otherwise.
        curves: at least one.
        parameters: what is free.
        starts: how many descents: the first from the priors' centres, the others from draws of the priors.
        steps: at most so many per descent and temperature.
        seed: of the starts.
        held_out: whether every other size is predicted from the rest first.
        unseen: curves that the fit is scored on instead.
        report: is told of every pass.

    Raises:
        CalibrationError: a prediction is not finite at the priors' centres.
    """
    with jax.enable_x64(True):
        fitting = _Fitting(config, tuple(curves), parameters, steps, report or (lambda label, loss: None))
        fit = fitting.run(starts, seed, held_out=held_out and not unseen)
    if not unseen:
        return fit
    score, forecast = score_unseen(fit.calibrated, fit.curves, unseen)
    return replace(fit, held_out=score, unseen=tuple(unseen), forecast=forecast)


def score_held_out(
    config: ClusterConfig,
    curves: Sequence[Curve],
    parameters: Parameters,
    *,
    used: Sequence[NDArray[np.bool_]] | None = None,
    starts: int = 4,
    steps: int = 60,
    seed: int = 0,
) -> HeldOut:
    """How well rows are predicted from others; arguments as for `fit_curves`.

    Args:
        config: the cluster.
        curves: all rows.
        parameters: what is free.
        used: per curve, which rows the fit sees; every other size by default.
        starts: how many descents.
        steps: at most so many per descent and temperature.
        seed: of the starts.
    """
    with jax.enable_x64(True):
        fitting = _Fitting(config, tuple(curves), parameters, steps, lambda label, loss: None)
        return fitting.held_out(fitting.places(starts, seed), used)


class _Fitting:
    """A fit in the making: one compiled descent, used by every pass."""

    def __init__(
        self,
        config: ClusterConfig,
        curves: tuple[Curve, ...],
        parameters: Parameters,
        steps: int,
        report: Report,
    ):
        self.config, self.curves, self.parameters, self.report = config, curves, parameters, report
        self.steps = steps
        self.predict = predictor(config, parameters, curves)
        self.residuals = curve_residuals(self.predict, curves)

        @jax.jit
        def descend(z: Any, data: CurveData) -> Any:
            return least_squares(self.residuals, z, data, steps=steps)

        self.descend = descend
        # Without a temperature: what a forecast will say.
        self.times = jax.jit(lambda z: self.predict(z, None))

    def run(self, starts: int, seed: int, *, held_out: bool) -> Fit:
        first, score = self.places(starts, seed), None
        if held_out and min(len(curve.sizes) for curve in self.curves) >= _ENOUGH_TO_HOLD_OUT:
            score = self.held_out(first)
        weights = size_weights(self.curves)
        best, convergence, sigma = self._settled("all sizes", first, weights)
        covariance = np.asarray(np.linalg.inv(best.normal), np.float64)
        return Fit(
            config=self.config,
            parameters=self.parameters,
            z=best.point,
            covariance=covariance,
            convergence=convergence,
            curves=self.curves,
            predicted=self._times(best.point),
            sigma=sigma,
            weights=weights,
            held_out=score,
        )

    def places(self, starts: int, seed: int) -> NDArray[np.float64]:
        """Where descents begin: at the priors' centres, and at draws of the priors."""
        count = len(self.parameters)
        drawn = np.random.default_rng(seed).normal(size=(max(starts, 1) - 1, count))
        return np.concatenate([np.zeros((1, count)), drawn])

    def _settled(
        self, label: str, first: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple["_Ended", Convergence, float]:
        """Descents with a scatter assumed, then with the one that their residuals show."""
        ended, _ = self._pass(label, first, weights, FIRST_SIGMA)
        sigma = self._scatter(ended, weights)
        best, convergence = self._pass(f"{label}, own scatter", ended.all_points, weights, sigma)
        return best, convergence, sigma

    def _pass(
        self, label: str, z: NDArray[np.float64], weights: NDArray[np.float64], sigma: float
    ) -> tuple["_Ended", Convergence]:
        """Descents from all starts at falling temperatures; the best end."""
        found, steps = None, np.zeros(len(z), int)
        for temperature in TEMPERATURES:
            numbers = (weights, np.zeros(len(self.parameters)), sigma, temperature)
            data = CurveData(*(jnp.asarray(each, float) for each in numbers))
            found = self.descend(jnp.asarray(z), data)
            z, steps = np.asarray(found.point), steps + np.asarray(found.steps)
            self.report(label, float(np.nanmin(found.loss)))
        assert found is not None
        losses = np.where(np.isfinite(found.loss), found.loss, np.inf)
        order = np.argsort(losses, kind="stable")
        best = order[0]
        if not np.isfinite(losses[best]):
            raise CalibrationError(
                "expected finite times at the priors' centres; got none: check the cluster's figures"
            )
        by_itself = bool(found.steps[best] <= self.steps)
        least = float(losses[best])
        convergence = Convergence(
            losses[order],
            float(found.gradient[best]),
            int(steps[best]),
            by_itself,
            flat=1e-2 * (1 + least),
            alike=1e-2 * least + 0.1,
        )
        return _Ended(z[best], np.asarray(found.normal[best]), z[order]), convergence

    def _times(self, z: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        return tuple(np.asarray(each) for each in self.times(jnp.asarray(z)))

    def held_out(
        self, first: NDArray[np.float64], used: Sequence[NDArray[np.bool_]] | None = None
    ) -> HeldOut:
        """Fits some rows, every other size unless told, and predicts the rest."""
        if used is None:
            used = [np.arange(len(curve.sizes)) % 2 == 0 for curve in self.curves]
        ended, _, _ = self._settled("every other size", first, size_weights(self.curves, used))
        rest = np.concatenate([~each for each in used])
        measured, sizes = (
            np.concatenate([getattr(curve, name) for curve in self.curves])[rest]
            for name in ("times", "sizes")
        )
        predicted = np.concatenate(self._times(ended.point))[rest]
        lines = [
            line(curve.sizes[each], curve.times[each], curve.sizes)
            if each.any()
            else np.full(curve.sizes.shape, np.nan)
            for curve, each in zip(self.curves, used, strict=True)
        ]
        straight = np.concatenate(lines)[rest]
        return HeldOut(np.abs(predicted / measured - 1), sizes, np.abs(straight / measured - 1))

    def _scatter(self, ended: "_Ended", weights: NDArray[np.float64]) -> float:
        used = weights > 0
        taken = len(self.parameters) - np.trace(np.linalg.inv(ended.normal))
        measured = np.concatenate([curve.times for curve in self.curves])
        relative = np.log(np.concatenate(self._times(ended.point)) / measured)[used]
        return own_scatter(relative, float(taken))


class _Ended(NamedTuple):
    """The best end of a pass: where, JᵀJ there, and where all descents ended, the best first."""

    point: NDArray[np.float64]
    normal: NDArray[np.float64]
    all_points: NDArray[np.float64]
