"""`tailstep calibrate --cluster` with single calls: noise of links from how times of a collective scatter."""

from typing import TYPE_CHECKING

from mc.cli.calibrated import TAKERS, Output, ending, fitted_figures
from mc.config import ClusterConfig
from mc.config.calibration import FitConfig
from mc.config.hold_out import parse_hold_out
from mc.errors import InputError

if TYPE_CHECKING:
    from mc.calibration import CallsFit
    from mc.logs import MeasurementTable
    from mc.report.calibration_calls import CallsReport


def calibrate_calls(
    config: ClusterConfig,
    table: "MeasurementTable",
    ask: FitConfig,
    output: Output,
) -> None:
    """Fits noise of links, writes and prints what was asked for.

    Args:
        config: the cluster.
        table: with times of single calls.
        ask: what to fit, and how.
        output: what to write and how to print; pictures and folders are refused.

    Raises:
        InputError: it cannot be done.
    """
    from mc.calibration import calibrated_noise_yaml, calls_of, fit_calls, noise_parameters
    from mc.report.fitting import fitting

    refused = (
        ("--plot", output.plot),
        ("--results", output.results),
        ("--bootstrap", ask.bootstrap or None),
        ("--second-network", ask.second_network),
        ("--posterior", "nuts" if ask.posterior == "nuts" else None),
    )
    for option, given in refused:
        if given is not None:
            raise InputError(
                f"{option}: expected a fit of mean times over sizes; of single calls `--json` keeps all figures"
            )
    rule = None if ask.hold_out is None else parse_hold_out(ask.hold_out)
    series, left = calls_of(table, config, ask.algorithms, rule)
    parameters = noise_parameters(config, series, ask.free or ())
    with fitting(ask.starts) as told:
        fit = fit_calls(
            config,
            series,
            parameters,
            held_out=left,
            starts=ask.starts,
            steps=ask.steps,
            seed=ask.seed,
            report=told,
        )
    output.keep(calibrated_noise_yaml(fit, output.command))
    report = calls_summary(fit, ask.hold_out or "")

    from mc.report.calibration_calls import calls_json, calls_text

    output.show(lambda: calls_json(report), lambda: calls_text(report), TAKERS, widest=240)


def calls_summary(fit: "CallsFit", rule: str = "") -> "CallsReport":
    """A fit as plain figures."""
    import numpy as np

    from mc.calibration import identify, short_name
    from mc.calibration.call_scores import SHOWN
    from mc.report.calibration import held_out_score
    from mc.report.calibration_calls import CallsReport, FittedSeries

    known = identify(fit.covariance)
    series = [
        FittedSeries(
            each.series.label,
            each.series.source,
            each.series.size,
            len(each.series.times),
            SHOWN,
            each.measured.tolist(),
            each.forecast.tolist(),
            each.distance,
            each.far,
            each.factor,
            each.held_out,
        )
        for each in fit.scores
    ]
    left = [each for each in fit.scores if each.held_out]
    errors = np.array([np.abs(each.forecast[:, 1] / each.measured[:, 1] - 1) for each in left]).ravel()
    sizes = np.repeat([each.series.size for each in left], len(SHOWN))
    return CallsReport(
        fit.config.name,
        0.9,
        fitted_figures(fit.parameters.items, fit.interval().tolist(), known),
        series,
        held_out_score(errors, sizes, np.full(len(errors), np.nan), rule) if left else None,
        fit.closed,
        fit.calls,
        fit.fitted,
        fit.widened,
        known.sentences([short_name(each) for each in fit.parameters.items]),
        **ending(fit.convergence),
    )
