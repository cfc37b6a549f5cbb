"""`tailstep calibrate` of a transformer: from steps at several numbers of ranks to a file that `tailstep run` takes."""

from typing import TYPE_CHECKING

from mc.cli.calibrated import Output, ending, fitted_figures
from mc.config import ExperimentConfig
from mc.config.calibration import FitConfig
from mc.config.hold_out import parse_hold_out

if TYPE_CHECKING:
    from mc.calibration.training_fit import TrainingFit
    from mc.logs import Imported
    from mc.report.calibration_training import TrainingReport


def calibrate_training(
    config: ExperimentConfig, ask: FitConfig, imported: "Imported", output: Output
) -> None:
    """Fits an experiment whose model is a transformer, writes and prints what was asked for.

    Args:
        config: the experiment.
        ask: what to fit, and how.
        imported: steps or MFU by numbers of ranks.
        output: what to write and how to print.

    Raises:
        InputError: it cannot be done.
    """
    from mc.calibration.training_fit import fit_training, training_parameters
    from mc.calibration.training_model import check_training
    from mc.calibration.training_rows import sized_rows, training_rows
    from mc.calibration.write_training import calibrated_training_yaml
    from mc.report.calibration_training import training_json, training_text
    from mc.report.fitting import fitting

    rule = parse_hold_out(ask.hold_out or "none")
    rows = sized_rows(config, training_rows(imported.table, imported.files, ask.ranks), ask.scaling, rule)
    parameters = training_parameters(config, ask.free or ())
    check_training(rows[0].config)
    with fitting(4) as told:
        fit = fit_training(
            config,
            rows,
            parameters,
            mode=ask.scaling,
            starts=ask.starts,
            steps=ask.steps,
            seed=ask.seed,
            report=told,
        )
    text = calibrated_training_yaml(fit, output.command)
    output.keep(text)
    report = training_summary(fit, ask.forecast)
    if output.results is not None:
        from mc.results.calibration import write_calibration

        write_calibration(output.results, training_json(report), output.command, text, ask.data)
    if output.plot is not None:
        from mc.report.pictures.calibration_training import plot_training

        plot_training(output.plot, report)
    takers = f"`tailstep run {output.out}` takes it"
    output.show(lambda: training_json(report), lambda: training_text(report), takers)


def training_summary(fit: "TrainingFit", forecast: tuple[int, ...] = ()) -> "TrainingReport":
    """A fit as plain figures, with forecasts of some numbers of ranks."""
    from mc.report.calibration_training import FittedSize, MeanForecast, TrainingReport

    sizes = []
    for score in fit.scores:
        sized, row = score.sized, score.sized.row
        spread = ", ".join(f"{key} {value}" for key, value in row.plan)
        sizes.append(
            FittedSize(
                row.source,
                row.ranks,
                spread,
                row.steps,
                row.time is None,
                sized.time,
                score.prior,
                score.predicted,
                score.constant,
                sized.full_use,
                sized.held_out,
            )
        )
    asked = zip(forecast, fit.forecast(forecast).tolist(), strict=True) if forecast else ()
    return TrainingReport(
        fit.config.name,
        0.9,
        fitted_figures(fit.parameters.items, fit.interval().tolist(), fit.known),
        sizes,
        fit.mode,
        fit.sigma,
        fit.sentences(),
        [MeanForecast(ranks, time, fit.use_at(ranks)) for ranks, time in asked],
        **ending(fit.convergence),
    )
