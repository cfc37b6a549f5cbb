"""A calibrated experiment as a file that `tailstep run` takes: complete, each fitted figure with its interval and its source.

What is left unknown of all of them together is the experiment's block `posterior`, which forecasts read; what an earlier calibration
of the cluster says of other figures stays in the cluster's.
"""

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML

from mc.calibration.identify import identify
from mc.calibration.parameters import Parameter
from mc.calibration.step_fit import StepsFit
from mc.calibration.write import WIDTH, comment, figure_notes, uncertain
from mc.config import ExperimentConfig, resolved_yaml
from mc.config.posterior import PosteriorConfig, both


def calibrated_experiment_yaml(fit: StepsFit, command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    experiment = fit.calibrated
    source = f"Laplace's approximation, from {_sources(fit)}"
    covariance = fit.covariance
    return annotated_experiment(
        experiment, fit.parameters.items, fit.interval(), covariance, source, _heading(fit, command)
    )


def annotated_experiment(
    experiment: ExperimentConfig,
    items: Sequence[Parameter],
    intervals: NDArray[np.float64],
    covariance: NDArray[np.float64],
    source: str,
    heading: Sequence[str],
) -> str:
    """A calibrated experiment as a file, with what is known of its fitted figures behind them, below a heading of some lines.

    Args:
        experiment: with the fitted figures.
        items: what was free.
        intervals: low, fitted and high of each.
        covariance: of the posterior, in standardised coordinates.
        source: of the posterior, in words.
        heading: without comment signs.
    """
    lower = np.asarray(np.linalg.cholesky(covariance), np.float64)
    found = PosteriorConfig(source=source, parameters=uncertain(items, lower, experiment))
    whole = experiment.model_copy(update={"posterior": both(experiment.posterior, found)})
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = WIDTH
    document = yaml.load(resolved_yaml(whole))
    for each, note in zip(items, figure_notes(items, intervals, identify(covariance)), strict=True):
        for path in each.paths:
            comment(document, path.split("."), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return "\n".join([*(f"# {line}" for line in heading), stream.getvalue()])


def _sources(fit: StepsFit) -> str:
    files = dict.fromkeys(score.run.source for score in fit.scores if score.run.source)
    return ", ".join(files) or "times that name no file"


def _heading(fit: StepsFit, command: str | None) -> Sequence[str]:
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
