"""A calibrated experiment as a file that `tailstep run` takes: complete, each fitted figure with its interval and its source.

What is left unknown of all of them together is the experiment's block `posterior`, which forecasts read; what an earlier calibration
of the cluster says of other figures stays in the cluster's.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mc.calibration.step_crps import DrawnFit
from mc.calibration.step_fit import StepsFit
from mc.calibration.step_valley import drawn_of
from mc.calibration.write import annotated_experiment, named

_DRAWS = 4000


def calibrated_experiment_yaml(fit: StepsFit, command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    experiment = fit.calibrated
    source = f"Laplace's approximation, from {_sources(fit)}"
    items, slow = fit.parameters.items, fit.coordinates.slowdown
    products = None
    if slow is not None and fit.valleys:
        # A normal law of products is near to what is known, one of the figures themselves is not.
        over = dict.fromkeys(fit.coordinates.moved, items[slow].paths[0])
        products = np.atleast_2d(np.cov(drawn_of(fit.valleys, _DRAWS), rowvar=False)), over
    heading = _heading(fit, command)
    return annotated_experiment(experiment, items, fit.interval(), fit.covariance, source, heading, products)


def drawn_experiment_yaml(fit: DrawnFit, command: str | None = None) -> str:
    """The same of a fit by the score of draws."""
    source = f"estimating equations of the CRPS, from {_sources(fit)}"
    return annotated_experiment(
        fit.calibrated, fit.parameters.items, fit.interval(), fit.covariance, source, _heading(fit, command)
    )


def _sources(fit: StepsFit | DrawnFit) -> str:
    return named(score.run.source for score in fit.scores)


def _heading(fit: StepsFit | DrawnFit, command: str | None) -> Sequence[str]:
    lines = [f"{fit.config.name}, calibrated to step times from {_sources(fit)}."]
    for score in fit.scores:
        what = "held out" if score.held_out else "fitted"
        lines.append(
            f"  {score.run.ranks} ranks, {len(score.run.times)} steps, {what}: p50 {_off(score.predicted, score.measured, 0)}, "
            f"p99 {_off(score.predicted, score.measured, -1)}"
        )
    return [*lines, *([f"Made by: {command}"] if command else [])]


def _off(predicted: NDArray[np.float64], measured: NDArray[np.float64], place: int) -> str:
    return f"{100 * float(predicted[place] / measured[place] - 1):+.1f} %"
