"""A cluster whose links' noise is calibrated, as a file that every verb takes; see `write.py`."""

import numpy as np

from mc.calibration.call_fit import CallsFit
from mc.calibration.call_scores import CallScore
from mc.calibration.identify import identify
from mc.calibration.write import annotated_yaml, named, uncertain
from mc.config.posterior import PosteriorConfig, both


def calibrated_noise_yaml(fit: CallsFit, command: str | None = None) -> str:
    """The text of the file.

    Figures that an earlier calibration left unknown keep that beside those of this fit.

    Args:
        fit: what to write.
        command: that makes it anew.
    """
    cluster = fit.calibrated
    lower = np.asarray(np.linalg.cholesky(fit.covariance), np.float64)
    found = PosteriorConfig(
        source=f"single calls, from {_sources(fit)}",
        parameters=uncertain(fit.parameters.items, lower, cluster),
    )
    lines = [
        f"{fit.config.name}, noise of its links calibrated to {fit.calls} single calls from {_sources(fit)}."
    ]
    lines += [f"  {_line(each)}" for each in fit.scores]
    lines += [f"Made by: {command}"] if command else []
    return annotated_yaml(
        cluster.model_copy(update={"posterior": both(found, cluster.posterior)}),
        fit.parameters.items,
        fit.interval(),
        identify(fit.covariance),
        lines,
    )


def _sources(fit: CallsFit) -> str:
    return named(each.series.source for each in fit.scores)


def _line(score: CallScore) -> str:
    off = score.forecast[:, 1] / score.measured[:, 1] - 1
    what = "held out" if score.held_out else "fitted"
    series = score.series
    return (
        f"{series.label}, {series.size:.0f} bytes, {len(series.times)} calls, {what}: p50 {100 * off[0]:+.1f} %, "
        f"p99 {100 * off[1]:+.1f} %"
    )
