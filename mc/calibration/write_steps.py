"""A calibrated experiment as a file that `tailstep run` takes: complete, each fitted figure with its interval and its source.

What is left unknown of the cluster's figures together is its block `posterior`, as in a calibrated cluster; of figures outside the
cluster, such as a model's efficiency, the comment behind them is all there is.
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
from mc.config.posterior import PosteriorConfig

_CLUSTER = "cluster."


def calibrated_experiment_yaml(fit: StepsFit, command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    experiment = fit.calibrated
    posterior = _posterior(fit, experiment)
    cluster = experiment.cluster.model_copy(update={"posterior": posterior})
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = WIDTH
    document = yaml.load(resolved_yaml(experiment.model_copy(update={"cluster": cluster})))
    notes = figure_notes(fit.parameters.items, fit.interval(), identify(fit.covariance))
    for each, note in zip(fit.parameters.items, notes, strict=True):
        for path in each.paths:
            comment(document, path.split("."), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return "\n".join([*(f"# {line}" for line in _heading(fit, command)), stream.getvalue()])


def _posterior(fit: StepsFit, experiment: ExperimentConfig) -> PosteriorConfig | None:
    """The joint law of those figures that are the cluster's; None if none is."""
    own = [
        place
        for place, each in enumerate(fit.parameters.items)
        if all(path.startswith(_CLUSTER) for path in each.paths)
    ]
    if not own:
        return None
    lower = np.asarray(np.linalg.cholesky(fit.covariance[np.ix_(own, own)]), np.float64)
    items = [_below_cluster(fit.parameters.items[place]) for place in own]
    return PosteriorConfig(
        source=f"Laplace's approximation, from {_sources(fit)}",
        parameters=uncertain(items, lower, experiment.cluster),
    )


def _below_cluster(parameter: Parameter) -> Parameter:
    def cut(path: str) -> str:
        return path.removeprefix(_CLUSTER)

    return Parameter(
        tuple(cut(path) for path in parameter.paths),
        parameter.center,
        parameter.spread,
        parameter.space,
        parameter.dimension,
        cut(parameter.group),
        cut(parameter.rest),
        parameter.limit,
    )


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
