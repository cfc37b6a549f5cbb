"""From rows of step times to runs, and which figures of an experiment they may say something about.

A run is the step times of one file on one number of ranks: one job on one set of chips. Times of single ranks are none, nor are
means over many steps, which a likelihood of steps would take for steps.
"""

from collections.abc import Sequence

import numpy as np

from mc.calibration.choose import chosen
from mc.calibration.errors import CalibrationError
from mc.calibration.kinds import can_move
from mc.calibration.parameters import Parameters
from mc.calibration.step_model import StepRun
from mc.config import ExperimentConfig
from mc.config.calibration import FreeConfig
from mc.config.figures import figures
from mc.config.hold_out import HoldOut
from mc.logs import MeasurementTable

_NOISE = "cluster.noise."
_FITTED = ("spread", "jitter", "pauses", "slow_chips")
# What multiplies a rank's time by a constant is its time once more.
_SAME_AS_TIME = ("median", "mean", "scale", "shift", "value")


def runs_of(table: MeasurementTable, ranks: int | None = None) -> list[StepRun]:
    """The runs in a table.

    Args:
        table: what the importers found.
        ranks: that the experiment has, for rows that do not say how many.

    Raises:
        CalibrationError: there are no step times.
    """
    rows = [row for row in table.rows() if row["kind"] == "step" and row["process"] is None]
    if not rows:
        kinds = sorted({str(row["kind"]) for row in table.rows()})
        what = f"rows of kind {', '.join(kinds)}" if kinds else "no rows"
        raise CalibrationError(f"expected step times, a column `step_time_s` beside `ranks`; got {what}")
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        where = f"{row['source']}, line {row['line']}"
        if row["conflict"] is not None:
            raise CalibrationError(
                f"{where}: expected rows that do not contradict themselves; got {row['conflict']}"
            )
        if row["time_s"] is None:
            raise CalibrationError(f"{where}: expected a step time; got none")
        count = row["ranks"] if row["ranks"] is not None else ranks
        if count is None:
            raise CalibrationError(
                f"{where}: expected the number of ranks; the file does not say it, so use --ranks"
            )
        found.setdefault((row["source"], int(count)), []).append(float(row["time_s"]))
    return [StepRun(count, np.array(times), source) for (source, count), times in found.items()]


def split_runs(runs: Sequence[StepRun], rule: HoldOut) -> tuple[list[StepRun], list[StepRun]]:
    """Runs to fit, and runs to score.

    Raises:
        CalibrationError: the rule leaves nothing to fit, or holds nothing out.
    """
    if rule.field == "none":
        return list(runs), []
    if rule.field == "size":
        raise CalibrationError(
            "hold_out: expected a rule on `ranks`, or `every 4`, for step times; got one on `size`"
        )
    fitted, left = [], []
    for run in runs:
        out = np.array([rule.holds(run.ranks, None, place) for place in range(len(run.times))])
        for mask, group in ((~out, fitted), (out, left)):
            if mask.any():
                group.append(StepRun(run.ranks, run.times[mask], run.source))
    if not fitted or not left:
        counts = ", ".join(str(each) for each in sorted({run.ranks for run in runs}))
        what = "all of them" if not fitted else "none"
        raise CalibrationError(
            f"hold_out: expected a rule that some rows meet and some do not; {what} do (ranks: {counts})"
        )
    return fitted, left


def step_parameters(config: ExperimentConfig, free: Sequence[FreeConfig] = ()) -> Parameters:
    """What is free: what was asked for, or what a rank computes and all its noise.

    Raises:
        PathError: a path leads nowhere.
        CalibrationError: there is nothing.
    """
    if free:
        return chosen(config, free)
    compute = config.model.compute
    if compute is None:
        raise CalibrationError("model: expected a model with `compute` and `exchange`; got a transformer")
    paths = ["model.compute.time" if compute.time is not None else "model.compute.efficiency"]
    paths += [each.path for each in figures(config) if _is_noise(config, each.path)]
    return chosen(config, [FreeConfig(path=path) for path in paths])


def _is_noise(config: ExperimentConfig, path: str) -> bool:
    if not path.startswith(_NOISE) or path.split(".")[2] not in _FITTED:
        return False
    _, _, kind, *_, key = path.split(".")
    if kind == "spread" and key in _SAME_AS_TIME:
        return False
    return can_move(config, path)
