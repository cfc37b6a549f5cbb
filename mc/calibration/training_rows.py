"""From a table of steps to what a transformer is fitted to: one row for each number of ranks that was measured.

Published tables say how long a step takes on so many accelerators, or which part of their peak it reaches (MFU). What changes
with the number of ranks is the number of replicas: each keeps its plan (tp, cp, pp, ep), and the global batch follows by
*weak* or *strong* scaling (`mc.experiment.scale`). Where a table states keys of a plan, they go before. Steps of one run
(rows with an iteration) count by their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mc.calibration.errors import CalibrationError
from mc.calibration.step_runs import check_whole
from mc.config import ExperimentConfig
from mc.config.hold_out import HoldOut
from mc.errors import InputError
from mc.experiment.scale import Mode, enlarged, with_enough_memory
from mc.experiment.training_summary import step_at_full_use
from mc.logs import MeasurementTable
from mc.logs.understood import UnderstoodFile
from mc.parallel import build_plan

# Steps of one table are never so many times apart, but milliseconds and seconds are.
_UNITS = 1000.0


@dataclass(frozen=True)
class TrainingRow:
    """One measured mean step.

    Attributes:
        ranks: that took part.
        time: seconds; None where only the MFU is known.
        mfu: model FLOP utilisation, 0 to 1; None where the time is known.
        steps: that the time is the mean of.
        source: the file.
        where: in it.
        plan: what the table says of how the job was spread.
    """

    ranks: int
    time: float | None
    mfu: float | None
    steps: int
    source: str
    where: str
    plan: tuple[tuple[str, int], ...] = ()

    @property
    def label(self) -> str:
        """For people."""
        spread = ", ".join(f"{key} {value}" for key, value in self.plan)
        return f"{self.ranks:,} ranks" + (f" ({spread})" if spread else "")


@dataclass(frozen=True)
class SizedRow:
    """A row with the experiment as it was run there.

    Attributes:
        row: what was measured.
        config: on as many ranks; memory is not looked at, since it ran.
        time: measured seconds of a step, from the MFU where that is what is known.
        full_use: seconds of a step whose MFU is 1.
        held_out: whether the fit does not see it.
    """

    row: TrainingRow
    config: ExperimentConfig
    time: float
    full_use: float
    held_out: bool


def training_rows(
    table: MeasurementTable, files: Sequence[UnderstoodFile] = (), ranks: int | None = None
) -> list[TrainingRow]:
    """The rows of a table.

    Args:
        table: what the importers found.
        files: what they understood of each file; one of which rows were passed over is refused.
        ranks: for rows that do not say how many.

    Raises:
        CalibrationError: there are none, or one says nothing.
    """
    for file in files:
        check_whole(file)
    rows = [row for row in table.rows() if row["kind"] == "step" and row["process"] is None]
    if not rows:
        kinds = sorted({str(row["kind"]) for row in table.rows()})
        what = f"rows of kind {', '.join(kinds)}" if kinds else "no rows"
        raise CalibrationError(
            f"expected steps, columns `ranks` and `step_time_s` or `mfu`, for a transformer; got {what}"
        )
    found, series = [], {}
    for row in rows:
        where = f"{row['source']}, line {row['line']}"
        if row["conflict"] is not None:
            raise CalibrationError(
                f"{where}: expected rows that do not contradict themselves; got {row['conflict']}"
            )
        count = row["ranks"] if row["ranks"] is not None else ranks
        if count is None:
            raise CalibrationError(
                f"{where}: expected the number of ranks; the file does not say it, so use --ranks"
            )
        own = _row(row, int(count), where)
        if own.time is not None and row["iteration"] is not None:
            series.setdefault((own.source, own.ranks, own.plan), []).append(own)
        else:
            found.append(own)
    found += [_mean(own) for own in series.values()]
    return sorted(found, key=lambda each: each.ranks)


def _row(row: Mapping[str, Any], ranks: int, where: str) -> TrainingRow:
    time, mfu = row["time_s"], row["mfu"]
    if time is None and mfu is None:
        raise CalibrationError(f"{where}: expected a step time or an MFU; got none")
    if time is None and not 0 < mfu < 1:
        raise CalibrationError(f"{where}: expected an MFU between 0 and 1; got {mfu:g}")
    stated = (word.split("=") for word in (row["plan"] or "").split())
    plan = tuple((key, int(value)) for key, value in stated)
    share = None if time is not None else float(mfu)
    steps = int(row["iterations"] or 1)
    return TrainingRow(ranks, time, share, steps, row["source"], where, plan)


def _mean(rows: Sequence[TrainingRow]) -> TrainingRow:
    first = rows[0]
    times = [each.time for each in rows if each.time is not None]
    where = f"{first.source}, {len(rows):,} steps"
    return TrainingRow(first.ranks, float(np.mean(times)), None, len(times), first.source, where, first.plan)


def sized_rows(
    config: ExperimentConfig, rows: Sequence[TrainingRow], mode: Mode, rule: HoldOut
) -> list[SizedRow]:
    """The experiment on as many ranks as each row has, and which rows are held out.

    Args:
        config: the experiment.
        rows: what was measured.
        mode: what stays where a table does not say: the work of a replica, or of all.
        rule: which rows the fit does not see.

    Raises:
        CalibrationError: the experiment cannot be had there; the rule leaves nothing to fit, or holds nothing out; times that
            cannot be of one table.
    """
    if rule.field in ("size", "process"):
        raise CalibrationError(
            f"hold_out: expected a rule on `ranks`, `file`, or `every 2`, for steps of a transformer; got one on `{rule.field}`"
        )
    found = []
    for place, row in enumerate(rows):
        sized = sized_at(config, row.ranks, mode, dict(row.plan), row.where)
        full_use = step_at_full_use(sized, build_plan(sized))
        time = row.time if row.time is not None else full_use / (row.mfu or 1.0)
        out = rule.holds(row.ranks, None, place, file=row.source)
        found.append(SizedRow(row, sized, float(time), full_use, out))
    out = sum(each.held_out for each in found)
    if rule.field != "none" and out in (0, len(found)):
        counts = ", ".join(str(each) for each in sorted({row.ranks for row in rows}))
        what = "all of them" if out else "none"
        raise CalibrationError(
            f"hold_out: expected a rule that some rows meet and some do not; {what} do (ranks: {counts})"
        )
    times = [each.time for each in found]
    if max(times) > _UNITS * min(times):
        raise CalibrationError(
            f"expected step times of one experiment; they go from {min(times):.3g} to {max(times):.3g} s: are all in one unit?"
        )
    return found


def sized_at(
    config: ExperimentConfig, ranks: int, mode: Mode, stated: Mapping[str, int], where: str
) -> ExperimentConfig:
    """An experiment on so many ranks, spread as stated, else as it is written; memory is not looked at.

    Raises:
        CalibrationError: it cannot be.
    """
    try:
        given = build_plan(config)
        plan = config.plan.model_copy(update={"ranks": ranks, "dp": None, **stated})
        one = plan.tp * plan.cp * plan.pp
        if ranks % one:
            raise CalibrationError(f"expected a whole number of replicas, each of {one:,} ranks")
        if "global_batch" not in stated and mode == "weak":
            plan = plan.model_copy(update={"global_batch": given.global_batch // given.dp * (ranks // one)})
        cluster, _ = enlarged(config.cluster, ranks)
        sized = config.model_copy(update={"cluster": cluster, "plan": plan})
        build_plan(sized)
    except InputError as error:
        raise CalibrationError(f"{where}: {ranks:,} ranks: {'; '.join(str(error).splitlines())}") from None
    return with_enough_memory(sized)
