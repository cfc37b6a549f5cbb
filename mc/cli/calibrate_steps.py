"""`tailstep calibrate` of an experiment: from step times to a file that `tailstep run` takes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mc.config import ExperimentConfig, load_experiment
from mc.config.calibration import FitConfig
from mc.config.hold_out import parse_hold_out
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.calibration import StepsFit
    from mc.logs import MeasurementTable
    from mc.report.calibration_steps import StepsReport

# What only curves have.
_OF_CURVES = ("algorithms", "collective", "nodes", "bootstrap")


def calibrate_experiment(
    name: str,
    ask: FitConfig,
    overrides: list[str],
    command: str,
    *,
    out: Path | None,
    results: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Fits an experiment to step times, writes and prints what was asked for.

    Args:
        name: a file, or a shipped experiment.
        ask: what to fit to what.
        overrides: of the experiment.
        command: that repeats it.
        out: where to write the calibrated experiment.
        results: where to keep the fit for `tailstep report`.
        plot: where to draw it.
        as_json: whether to print one JSON object.

    Raises:
        InputError: it cannot be done.
    """
    from mc.logs import Hints, read_logs

    for key in _OF_CURVES:
        if getattr(ask, key):
            raise InputError(f"{key}: expected none for step times, which are no curves of a collective")
    config = load_experiment(name, overrides)
    table = read_logs(ask.data, Hints(ranks=ask.ranks)).table
    report, text = _fitted(config, ask, table, command)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if results is not None:
        from mc.report.calibration_steps import steps_json
        from mc.results.calibration import write_calibration

        write_calibration(results, steps_json(report), command, text, ask.data)
    if plot is not None:
        from mc.report.calibration_steps_plot import plot_steps

        plot_steps(plot, report)
    _print(report, out, as_json=as_json)


def _fitted(
    config: ExperimentConfig, ask: FitConfig, table: "MeasurementTable", command: str
) -> tuple["StepsReport", str]:
    from mc.calibration import (
        calibrated_experiment_yaml,
        fit_runs,
        runs_of,
        split_runs,
        step_parameters,
    )
    from mc.calibration.step_model import check_steps
    from mc.report.fitting import fitting

    runs = runs_of(table)
    fitted, held_out = split_runs(runs, parse_hold_out(ask.hold_out or "none"))
    check_steps(config, [*(run.ranks for run in runs), *ask.forecast])
    parameters = step_parameters(config, ask.free or ())
    with fitting(ask.starts) as report:
        fit = fit_runs(
            config,
            fitted,
            parameters,
            held_out=held_out,
            starts=ask.starts,
            steps=ask.steps,
            seed=ask.seed,
            report=report,
        )
    return steps_summary(fit, ask.forecast), calibrated_experiment_yaml(fit, command)


def steps_summary(fit: "StepsFit", forecast: tuple[int, ...] = ()) -> "StepsReport":
    """A fit as plain figures, with forecasts of some numbers of ranks."""
    import numpy as np

    from mc.calibration import short_name
    from mc.calibration.step_scores import CURVE, SHOWN
    from mc.report.calibration import FittedFigure
    from mc.report.calibration_steps import FittedRun, Forecast, StepsReport

    known = fit.known
    rows = zip(fit.parameters.items, fit.interval().tolist(), strict=True)
    figures = [
        FittedFigure(
            short_name(each), each.paths, each.dimension, each.center, low, value, high, known.learnt(place)
        )
        for place, (each, (low, value, high)) in enumerate(rows)
    ]
    runs = [
        FittedRun(
            score.run.source,
            score.run.ranks,
            len(score.run.times),
            SHOWN,
            score.measured.tolist(),
            score.predicted.tolist(),
            score.distance,
            score.far,
            score.held_out,
            curve=np.stack([CURVE, np.quantile(score.run.times, CURVE), score.curve], axis=1).tolist(),
        )
        for score in fit.scores
    ]
    asked = [] if not forecast else zip(forecast, fit.forecast(forecast).tolist(), strict=True)
    ended = fit.convergence
    return StepsReport(
        fit.config.name,
        0.9,
        figures,
        runs,
        ended.losses.tolist(),
        ended.gradient,
        ended.steps,
        ended.outcome,
        ended.agreeing,
        fit.sentences(),
        [Forecast(ranks, SHOWN, times) for ranks, times in asked],
        fit.log_likelihood,
    )


def _print(report: "StepsReport", out: Path | None, *, as_json: bool) -> None:
    from mc.report.calibration_steps import steps_json, steps_text

    if as_json:
        print(json.dumps(steps_json(report), allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    text = steps_text(report)
    console.width = max(console.width, min(Console(width=500).measure(text).maximum, 160))
    console.print(text, highlight=False)
    if out is not None:
        console.print(f"\nkept in {out}: `tailstep run {out}` takes it", markup=False, highlight=False)
