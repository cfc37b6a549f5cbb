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
from mc.calibration.step_fit import StepsFit
from mc.calibration.write import WIDTH, comment, figure_notes, uncertain
from mc.config import resolved_yaml
from mc.config.posterior import PosteriorConfig, both


def calibrated_experiment_yaml(fit: StepsFit, command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    experiment = fit.calibrated
    source = f"Laplace's approximation, from {_sources(fit)}"
    lower = np.asarray(np.linalg.cholesky(fit.covariance), np.float64)
    found = PosteriorConfig(source=source, parameters=uncertain(fit.parameters.items, lower, experiment))
    whole = experiment.model_copy(update={"posterior": both(experiment.posterior, found)})
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = WIDTH
    document = yaml.load(resolved_yaml(whole))
    notes = figure_notes(fit.parameters.items, fit.interval(), identify(fit.covariance))
    for each, note in zip(fit.parameters.items, notes, strict=True):
        for path in each.paths:
            comment(document, path.split("."), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return "\n".join([*(f"# {line}" for line in _heading(fit, command)), stream.getvalue()])


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
