"""A fit of a transformer's experiment to steps at several numbers of ranks: robust least squares of relative errors.

The loss is that of curves (`loss.py`): log(predicted/measured)/σ under Huber's smooth form, with the priors as residuals. Descents
are scipy's trust region, since steps are not traced (`training_model.py`); uncertainty is Laplace's, (JᵀJ)⁻¹. σ is 4 % first, then
what the residuals show, at least 2 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from mc.calibration.choose import chosen
from mc.calibration.convergence import Convergence
from mc.calibration.errors import CalibrationError
from mc.calibration.fitted import LEVEL, Fitted, Report
from mc.calibration.loss import FIRST_SIGMA, own_scatter, robust
from mc.calibration.parameters import Parameters, short_name
from mc.calibration.training_model import TrainingModel, Waits
from mc.calibration.training_rows import SizedRow, sized_at
from mc.config import ExperimentConfig
from mc.config.calibration import FreeConfig
from mc.experiment.scale import Mode
from mc.experiment.training_summary import step_at_full_use
from mc.parallel import build_plan

Floats = NDArray[np.float64]
# What noise multiplies steps by is known well enough when it would change by no more, in parts of the scatter.
_STILL, _ROUNDS = 1e-2, 6
# Slopes of the logarithm of a step, by standard deviations of the priors, that are rounding alone.
_NOTHING = 1e-6
# Coordinates of a start beyond are those of no machine.
_FAR = 2.5


@dataclass(frozen=True)
class RowScore:
    """How one row came out.

    Attributes:
        sized: what was measured.
        prior: seconds, predicted before the fit.
        predicted: seconds, after it.
        constant: seconds, if all ranks were used as well as those of the rows that were fitted are in the (geometric) mean.
    """

    sized: SizedRow
    prior: float
    predicted: float
    constant: float

    @property
    def error(self) -> float:
        """Predicted/measured − 1."""
        return self.predicted / self.sized.time - 1


@dataclass(frozen=True)
class TrainingFit(Fitted[ExperimentConfig]):
    """A calibrated experiment.

    Attributes:
        mode: how the number of ranks changes what is done, where a table does not say.
        scores: of all rows, by ranks.
        sigma: relative scatter of the rows around the fit.
    """

    mode: Mode
    scores: tuple[RowScore, ...]
    sigma: float

    def sentences(self) -> list[str]:
        """The same for people."""
        fitted = sum(not each.sized.held_out for each in self.scores)
        found = self.known.sentences([short_name(each) for each in self.parameters.items])
        if fitted <= self.known.directions:
            found.append(
                f"With {fitted} row{'s' if fitted > 1 else ''} for {self.known.directions} figures that the data fix, how rows "
                f"scatter around the model cannot be seen: {100 * self.sigma:.0f} % is assumed, and the intervals follow from it."
            )
        return found

    def forecast(self, ranks: Sequence[int], level: float = LEVEL) -> Floats:
        """Mean steps on other numbers of ranks, [ranks, (low, fitted, high)], seconds.

        The ends hold what is not known of the figures, to first order, and nothing of the model.

        Raises:
            CalibrationError: the experiment cannot be had there.
        """
        sized = tuple(sized_at(self.config, each, self.mode, {}, "forecast") for each in ranks)
        model = TrainingModel(sized, self.parameters)
        waits = model.waits(self.z)
        middle = model.quiet(self.z) + waits.log_ratio
        slopes = model.slopes(self.z) + waits.slopes
        reach = stats.norm.ppf(0.5 + level / 2) * np.sqrt(
            np.einsum("ri,ij,rj->r", slopes, self.covariance, slopes)
        )
        return np.exp(np.stack([middle - reach, middle, middle + reach], axis=-1))

    def use_at(self, ranks: int) -> float:
        """Seconds of a step on other numbers of ranks whose MFU is 1."""
        sized = sized_at(self.config, ranks, self.mode, {}, "forecast")
        return step_at_full_use(sized, build_plan(sized))


def training_parameters(config: ExperimentConfig, free: Sequence[FreeConfig] = ()) -> Parameters:
    """What is free: what was asked for, or the part of its peak that the chip reaches in large matrix products.

    Raises:
        PathError: a path leads nowhere.
        CalibrationError: or to what cannot be fitted.
    """
    if free:
        return chosen(config, free)
    efficiency, math = config.cluster.chip.efficiency, config.plan.formats.math
    if efficiency is None:
        raise CalibrationError("cluster.chip: expected a chip with `efficiency`; got one without")
    rates = efficiency.matmul
    key = math if getattr(rates, math, None) is not None else "bf16"
    return chosen(config, [FreeConfig(path=f"cluster.chip.efficiency.matmul.{key}")])


def fit_training(
    config: ExperimentConfig,
    rows: Sequence[SizedRow],
    parameters: Parameters,
    *,
    mode: Mode = "weak",
    starts: int = 4,
    steps: int = 60,
    seed: int = 0,
    report: Report | None = None,
) -> TrainingFit:
    """Fits figures of an experiment to mean steps.

    Args:
        config: the experiment; where the priors are centred unless parameters say otherwise.
        rows: measured, those held out among them.
        parameters: what is free.
        mode: how rows were sized; for forecasts.
        starts: how many descents: the first from the priors' centres, the others from draws of the priors.
        steps: at most so many evaluations of each descent.
        seed: of the starts.
        report: is told of every descent.

    Raises:
        CalibrationError: nothing is to be fitted, or the step does not depend on what is free.
    """
    told, size = report or (lambda label, loss: None), len(parameters)
    fitted = [row for row in rows if not row.held_out]
    if not fitted:
        raise CalibrationError("expected a row to fit to; got none")
    every = TrainingModel.of(rows, parameters)
    seen = TrainingModel.of(fitted, parameters)
    mask = np.array([not row.held_out for row in rows])
    center = np.zeros(size)
    waits = every.waits(center)
    first = every.quiet(center) + waits.log_ratio
    if not np.isfinite(first).all():
        raise CalibrationError("expected finite steps at the priors' centres; got none")
    descent = _Descent(seen, np.log([row.time for row in fitted]), steps)
    drawn = np.random.default_rng(seed).normal(size=(starts - 1, size))
    places = [center, *np.clip(drawn, -_FAR, _FAR)]
    sigma, change, losses = FIRST_SIGMA, np.inf, np.zeros(0)
    ends: list[_End] = []
    for again in range(_ROUNDS):
        ends = sorted((descent.down(z, waits.of(mask), sigma) for z in places), key=lambda end: end.loss)
        told("again, own scatter and noise" if again else "descents", ends[0].loss)
        losses = np.array([end.loss for end in ends]) if len(ends) >= len(losses) else losses
        places, z = [end.z for end in ends] if not again else [ends[0].z], ends[0].z
        far = float(np.abs(z - waits.at).max())
        if again and change * far <= _STILL * sigma:
            break
        before, waits = waits, every.waits(z)
        # Per standard deviation that the fit has moved.
        change = float(np.abs(waits.log_ratio - before.near(z)).max()) / max(far, 1e-9)
        taken = size - float(np.trace(ends[0].covariance))
        sigma = own_scatter(descent.relative(z, waits.of(mask)), taken)
    best = descent.at(ends[0], waits.of(mask), sigma)
    if np.abs(best.jacobian[: len(fitted)]).max() * sigma < _NOTHING:
        names = ", ".join(short_name(each) for each in parameters.items)
        raise CalibrationError(f"expected figures that steps depend on; got {names}, which change nothing")
    last = np.exp(every.quiet(best.z) + waits.near(best.z))
    use = np.exp(np.mean([np.log(row.full_use / row.time) for row in fitted]))
    scores = tuple(
        RowScore(row, float(np.exp(prior)), float(after), row.full_use / use)
        for row, prior, after in zip(rows, first, last, strict=True)
    )
    convergence = Convergence(
        losses,
        best.gradient,
        best.steps,
        best.ended,
        flat=1e-2 * (1 + best.loss),
        alike=1e-2 * float(losses[0]) + 0.1,
    )
    return TrainingFit(
        config=config,
        parameters=parameters,
        z=best.z,
        covariance=best.covariance,
        convergence=convergence,
        mode=mode,
        scores=tuple(scores),
        sigma=sigma,
    )


@dataclass(frozen=True)
class _End:
    """Where a descent ended; the Jacobian's last rows are those of the priors."""

    z: Floats
    loss: float
    gradient: float
    steps: int
    ended: bool
    jacobian: Floats

    @property
    def covariance(self) -> Floats:
        return np.asarray(np.linalg.inv(self.jacobian.T @ self.jacobian), np.float64)


class _Descent:
    """Descents of one fit; what is evaluated is remembered, since a solver asks twice."""

    def __init__(self, model: TrainingModel, measured: Floats, steps: int):
        self.model, self.measured, self.steps = model, measured, steps
        self._quiet: dict[bytes, Floats] = {}
        self._slopes: dict[bytes, Floats] = {}

    def relative(self, z: Floats, waits: Waits) -> Floats:
        """log(predicted/measured) of each row."""
        key = z.tobytes()
        if key not in self._quiet:
            self._quiet[key] = self.model.quiet(z)
        return self._quiet[key] + waits.near(z) - self.measured

    def residuals(self, z: Floats, waits: Waits, sigma: float) -> Floats:
        """Those of rows, then those of priors."""
        return np.concatenate([robust(self.relative(z, waits) / sigma), z])

    def jacobian(self, z: Floats, waits: Waits, sigma: float) -> Floats:
        """Of the same."""
        key = z.tobytes()
        if key not in self._slopes:
            self._slopes[key] = self.model.slopes(z)
        relative = self.relative(z, waits) / sigma
        root = np.sqrt(1 + relative**2)
        # d/dr of r·√(2/(√(1 + r²) + 1)), whose square is 2·(√(1 + r²) − 1).
        bend = np.where(relative == 0, 1.0, relative / root / np.where(relative == 0, 1.0, robust(relative)))
        rows = bend[:, None] * (self._slopes[key] + waits.slopes) / sigma
        return np.concatenate([rows, np.eye(len(z))])

    def down(self, start: Floats, waits: Waits, sigma: float) -> _End:
        """From a start."""

        def slopes(z: Floats) -> Any:
            return self.jacobian(z, waits, sigma)

        found: Any = optimize.least_squares(
            lambda z: self.residuals(z, waits, sigma),
            start,
            jac=slopes,  # pyright: ignore[reportArgumentType]
            max_nfev=self.steps,
            xtol=1e-6,
            ftol=1e-9,
            gtol=1e-6,
        )
        return _End(
            found.x, float(found.cost), float(found.optimality), int(found.nfev), found.status > 0, found.jac
        )

    def at(self, end: _End, waits: Waits, sigma: float) -> _End:
        """The end of a descent as it is with other waits and another scatter."""
        found, slopes = self.residuals(end.z, waits, sigma), self.jacobian(end.z, waits, sigma)
        steep = float(np.abs(slopes.T @ found).max())
        return _End(end.z, float(found @ found / 2), steep, end.steps, end.ended, slopes)
