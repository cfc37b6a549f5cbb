"""A transformer's experiment, calibrated, as a file that `tailstep run` takes."""

from collections.abc import Sequence

from mc.calibration.training_fit import TrainingFit
from mc.calibration.write import annotated_experiment, named


def calibrated_training_yaml(fit: TrainingFit, command: str | None = None) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    source = f"Laplace's approximation, from {_sources(fit)}"
    return annotated_experiment(
        fit.calibrated,
        fit.parameters.items,
        fit.interval(),
        fit.covariance,
        source,
        _heading(fit, command),
    )


def _sources(fit: TrainingFit) -> str:
    return named(score.sized.row.source for score in fit.scores)


def _heading(fit: TrainingFit, command: str | None) -> Sequence[str]:
    lines = [f"{fit.config.name}, calibrated to mean steps from {_sources(fit)}."]
    for score in fit.scores:
        what = "held out" if score.sized.held_out else "fitted"
        lines.append(f"  {score.sized.row.label}, {what}: {100 * score.error:+.1f} %")
    lines.append(f"Scatter around the model: {100 * fit.sigma:.1f} %.")
    return [*lines, *([f"Made by: {command}"] if command else [])]
