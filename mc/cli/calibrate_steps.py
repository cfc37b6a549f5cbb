"""`tailstep calibrate` of an experiment: from step times to a file that `tailstep run` takes."""

from typing import TYPE_CHECKING

from mc.cli.calibrated import Output, ending, fitted_figures
from mc.config import ExperimentConfig, load_experiment
from mc.config.calibration import FitConfig
from mc.config.hold_out import parse_hold_out
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.calibration import StepsFit
    from mc.calibration.step_crps import DrawnFit
    from mc.logs import Imported
    from mc.report.calibration_steps import StepsReport

# What only curves have.
_OF_CURVES = ("algorithms", "collective", "nodes", "bootstrap")
# More rows than any log of steps has; a million are read in half a minute.
_MOST_ROWS = 1_000_000


def calibrate_experiment(
    name: str,
    ask: FitConfig,
    overrides: list[str],
    output: Output,
) -> None:
    """Fits an experiment to step times, writes and prints what was asked for.

    Args:
        name: a file, or a shipped experiment.
        ask: what to fit to what.
        overrides: of the experiment.
        output: what to write and how to print.

    Raises:
        InputError: it cannot be done.
    """
    from mc.logs import Hints, read_logs

    for key in _OF_CURVES:
        if getattr(ask, key):
            raise InputError(f"{key}: expected none for step times, which are no curves of a collective")
    config = load_experiment(name, overrides)
    imported = read_logs(ask.data, Hints(ranks=ask.ranks), most=_MOST_ROWS)
    if config.model.transformer is not None:
        from mc.cli.calibrate_training import calibrate_training

        calibrate_training(config, ask, imported, output)
        return
    if ask.scaling != "weak":
        raise InputError(
            "scaling: expected none but for a transformer, whose replicas it is about; got a model of `compute` and `exchange`"
        )
    report, text = _fitted(config, ask, imported, output.command)
    output.keep(text)

    from mc.report.calibration_steps import steps_json, steps_text

    if output.results is not None:
        from mc.results.calibration import write_calibration

        write_calibration(output.results, steps_json(report), output.command, text, ask.data)
    if output.plot is not None:
        from mc.report.pictures.calibration_steps import plot_steps

        plot_steps(output.plot, report)
    takers = f"`tailstep run {output.out}` takes it"
    output.show(lambda: steps_json(report), lambda: steps_text(report), takers)


def _fitted(
    config: ExperimentConfig, ask: FitConfig, imported: "Imported", command: str
) -> tuple["StepsReport", str]:
    from mc.calibration import (
        calibrated_experiment_yaml,
        fit_runs,
        runs_of,
        split_runs,
        step_parameters,
    )
    from mc.calibration.step_crps import fit_drawn
    from mc.calibration.step_draws import drawn_parameters
    from mc.calibration.step_model import check_barrier, check_steps, has_likelihood
    from mc.calibration.write_steps import drawn_experiment_yaml
    from mc.report.fitting import fitting

    runs = runs_of(imported.table, imported.files)
    fitted, held_out = split_runs(runs, parse_hold_out(ask.hold_out or "none"))
    ranks = [*(run.ranks for run in runs), *ask.forecast]
    if not has_likelihood(config):
        check_barrier(config, ranks)
        free = drawn_parameters(config, ask.free or ())
        with fitting(1) as report:
            drawn = fit_drawn(
                config, fitted, free, held_out=held_out, starts=ask.starts, seed=ask.seed, report=report
            )
        return steps_summary(drawn, ask.forecast), drawn_experiment_yaml(drawn, command)
    check_steps(config, ranks)
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


def steps_summary(fit: "StepsFit | DrawnFit", forecast: tuple[int, ...] = ()) -> "StepsReport":
    """A fit as plain figures, with forecasts of some numbers of ranks."""
    import numpy as np

    from mc.calibration.step_scores import CURVE, SHOWN
    from mc.report.calibration_steps import FittedRun, Forecast, StepsReport

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
            np.stack([CURVE, np.quantile(score.run.times, CURVE), score.curve], axis=1).tolist(),
        )
        for score in fit.scores
    ]
    asked = [] if not forecast else zip(forecast, fit.forecast(forecast).tolist(), strict=True)
    return StepsReport(
        fit.config.name,
        0.9,
        fitted_figures(fit.parameters.items, fit.interval().tolist(), fit.known),
        runs,
        fit.sentences(),
        [Forecast(ranks, SHOWN, times) for ranks, times in asked],
        getattr(fit, "log_likelihood", None),
        **ending(fit.convergence),
    )
