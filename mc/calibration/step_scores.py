"""How well a law has measured distributions of step times, and which times say nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mc.calibration.errors import CalibrationError
from mc.calibration.step_model import StepRun

SHOWN = (0.5, 0.9, 0.99)
_LEAST_ROWS = 10
# Medians of the runs of one experiment never differ by so much, but milliseconds and seconds do.
_UNITS = 100.0
# Of the fitted distribution that the measured one is held against.
_LEVELS = 256
# Every eighth of them is kept.
_KEPT = 8
CURVE = ((np.arange(_LEVELS) + 0.5) / _LEVELS)[_KEPT // 2 :: _KEPT]


@dataclass(frozen=True)
class RunScore:
    """How one run came out.

    Attributes:
        run: its step times.
        measured: their quantiles at `SHOWN`, seconds.
        predicted: those of the fit.
        distance: the largest between measured and fitted distribution (Kolmogorov's).
        held_out: whether the fit has not seen it.
        curve: fitted times at evenly spaced levels from `CURVE`, seconds.
    """

    run: StepRun
    measured: NDArray[np.float64]
    predicted: NDArray[np.float64]
    distance: float
    held_out: bool
    curve: NDArray[np.float64]

    @property
    def far(self) -> bool:
        """Whether so large a distance has a chance below 1 % under the fitted law; steps may depend on each other, though."""
        return bool(self.distance > 1.63 / np.sqrt(len(self.run.times)))


def scored(
    runs: Sequence[StepRun],
    held_out: Sequence[bool],
    quantiles_of: Callable[[Sequence[StepRun], NDArray[np.bool_], NDArray[np.float64]], NDArray[np.float64]],
) -> list[RunScore]:
    """How well a law has the distribution of step times of some runs.

    Args:
        runs: measured.
        held_out: which of them the fit has not seen.
        quantiles_of: step times of runs, of which some were not seen, at some levels, [runs, levels], seconds.
    """
    levels = np.concatenate([SHOWN, (np.arange(_LEVELS) + 0.5) / _LEVELS])
    predicted = quantiles_of(runs, np.array(held_out), levels)
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
        found.append(
            RunScore(
                run, measured, quantiles[: len(SHOWN)], float(distance), held, curve[_KEPT // 2 :: _KEPT]
            )
        )
    return found


def check_runs(runs: Sequence[StepRun]) -> None:
    """Refuses times that say nothing.

    Raises:
        CalibrationError: with what is wrong.
    """
    times = np.concatenate([run.times for run in runs]) if runs else np.zeros(0)
    if len(times) < _LEAST_ROWS:
        where = f"{runs[0].source}: " if runs and runs[0].source else ""
        raise CalibrationError(f"{where}expected {_LEAST_ROWS} step times or more; got {len(times)}")
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
    least, most = (runs[int(place)] for place in (np.argmin(middle), np.argmax(middle)))
    if max(middle) > _UNITS * min(middle):
        where = f"{most.source}: " if most.source else ""
        other = f" of {least.source}" if least.source not in ("", most.source) else ""
        raise CalibrationError(
            f"{where}expected step times of one experiment; medians go from {min(middle):.3g} s on {least.ranks} ranks{other} to "
            f"{max(middle):.3g} s on {most.ranks}: are all in one unit?"
        )
