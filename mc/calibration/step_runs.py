"""From rows of step times to runs, and which figures of an experiment they may say something about.

A run is the step times of one file on one number of ranks: one job on one set of chips. Times of single ranks are none, nor are
means over many steps, which a likelihood of steps would take for steps.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

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
from mc.logs.understood import UnderstoodFile

_NOISE = "cluster.noise."
_FITTED = ("spread", "jitter", "pauses", "slow_chips")
_COLUMNS = ("source", "line", "kind", "ranks", "process", "iteration", "time_s", "conflict")
# No step of a run takes so many times its median, but milliseconds among seconds do.
_ODD = 300.0
# That are fitted at most, and that a run keeps at least.
_MOST_STEPS, _LEAST_SHARE = 10_000, 200
# What multiplies a rank's time by a constant is its time once more.
_SAME_AS_TIME = ("median", "mean", "scale", "shift", "value")


def runs_of(
    table: MeasurementTable, files: Sequence[UnderstoodFile] = (), ranks: int | None = None
) -> list[StepRun]:
    """The runs in a table.

    Args:
        table: what the importers found.
        files: what they understood of each file; one of which rows were passed over is refused, since a fit would not say so.
        ranks: that the experiment has, for rows that do not say how many.

    Raises:
        CalibrationError: there are no step times, or not all of a file are such.
    """
    for file in files:
        check_whole(file)
    steps = table.data.select(_COLUMNS).filter(ds.field("kind") == "step")
    if not steps.num_rows:
        kinds = [str(each) for each in table.data.column("kind").unique().to_pylist()]
        what = f"rows of kind {', '.join(sorted(kinds))}" if kinds else "no rows"
        raise CalibrationError(f"expected step times, a column `step_time_s` beside `ranks`; got {what}")
    steps = steps.filter(ds.field("process").is_null())
    if not steps.num_rows:
        source = table.data.column("source")[0].as_py()
        raise CalibrationError(
            f"{source}: expected the time of each step, which all processes end together; got times of single processes alone"
        )
    if ranks is not None:
        steps = steps.set_column(
            _COLUMNS.index("ranks"),
            "ranks",
            pc.fill_null(steps.column("ranks"), pa.scalar(ranks, pa.int32())),
        )
    _first(
        steps,
        ds.field("conflict").is_valid(),
        "expected rows that do not contradict themselves; got {conflict}",
    )
    _first(steps, ds.field("time_s").is_null(), "expected a step time; got none")
    _first(
        steps,
        ds.field("ranks").is_null(),
        "expected a whole number of ranks above 0; got none: give the column `ranks`, or `--ranks`",
    )
    keys = steps.select(("source", "ranks")).group_by(["source", "ranks"]).aggregate([]).to_pylist()
    return [
        _run(steps.filter((ds.field("source") == key["source"]) & (ds.field("ranks") == key["ranks"])))
        for key in keys
    ]


def _run(rows: pa.Table) -> StepRun:
    """A run, of which no step came twice and none is in another unit than the rest."""
    source, ranks = rows.column("source")[0].as_py(), int(rows.column("ranks")[0].as_py())
    lines, times = rows.column("line").to_numpy(), rows.column("time_s").to_numpy()
    steps = rows.column("iteration").to_numpy()
    if np.isfinite(steps).all():
        _, first = np.unique(steps, return_index=True)
        if len(first) < len(steps):
            again = np.setdiff1d(np.arange(len(steps)), first)[0]
            before = np.flatnonzero(steps == steps[again])[0]
            raise CalibrationError(
                f"{_at(source, lines[again])}: expected each step of a run on {ranks} ranks once; got step {steps[again]:.0f} "
                f"again{_since(lines[before])}: one file for each run, one row for each step"
            )
    middle = float(np.median(times))
    odd = np.flatnonzero((times > _ODD * middle) | (times * _ODD < middle))
    if len(odd):
        raise CalibrationError(
            f"{_at(source, lines[odd[0]])}: expected step times within a factor of {_ODD:.0f} of their median; got "
            f"{times[odd[0]]:.3g} s where that is {middle:.3g} s{_as_well(len(odd))}: are all in one unit?"
        )
    return StepRun(ranks, times, source)


def check_whole(file: UnderstoodFile) -> None:
    """Refuses a file of which an importer has left out rows."""
    for each in file.skipped:
        where = _at(file.source, each.lines[0] if each.lines else None)
        example = f", `{each.example}`" if each.example else ""
        raise CalibrationError(
            f"{where}: expected step times and nothing else; got {each.reason} ({each.count:,}){example}"
        )
    for table in file.tables:
        if table.conflicts:
            raise CalibrationError(
                f"{file.source}: expected rows that do not contradict themselves; got {table.conflicts:,} that do, "
                f"{table.conflict_examples[0]}"
            )


def _first(rows: pa.Table, wrong: Any, message: str) -> None:
    """Refuses the first row that is wrong."""
    found = rows.filter(wrong).slice(0, 1).to_pylist()
    if found:
        raise CalibrationError(f"{_at(found[0]['source'], found[0]['line'])}: {message.format(**found[0])}")


def _at(source: str, line: float | None) -> str:
    return source if line is None or np.isnan(line) else f"{source}:{line:.0f}"


def _since(line: float) -> str:
    return "" if np.isnan(line) else f" (line {line:.0f} has it)"


def _as_well(count: int) -> str:
    return "" if count == 1 else f", and {count - 1:,} others like it"


def thinned(runs: Sequence[StepRun]) -> list[StepRun]:
    """The same, with evenly spaced steps where a run has more than its share of what can be fitted in a minute."""
    share = max(_MOST_STEPS // max(len(runs), 1), _LEAST_SHARE)
    return [replace(run, times=run.times[:: -(-len(run.times) // share)]) for run in runs]


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
