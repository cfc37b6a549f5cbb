"""`tailstep calibrate --cluster` with single calls: noise of links from how times of a collective scatter."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

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
    command: str,
    *,
    out: Path | None,
    results: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Fits noise of links, writes and prints what was asked for.

    Args:
        config: the cluster.
        table: with times of single calls.
        ask: what to fit, and how.
        command: that repeats it.
        out: where to write the calibrated cluster.
        results: refused.
        plot: refused.
        as_json: whether to print one JSON object.

    Raises:
        InputError: it cannot be done.
    """
    from mc.calibration import calibrated_noise_yaml, calls_of, fit_calls, noise_parameters
    from mc.report.fitting import fitting

    refused = (
        ("--plot", plot),
        ("--results", results),
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
    with fitting(ask.starts) as report:
        fit = fit_calls(
            config,
            series,
            parameters,
            held_out=left,
            starts=ask.starts,
            steps=ask.steps,
            seed=ask.seed,
            report=report,
        )
    if out is not None:
        out.write_text(calibrated_noise_yaml(fit, command), encoding="utf-8")
    _print(calls_summary(fit, ask.hold_out or ""), out, as_json=as_json)


def calls_summary(fit: "CallsFit", rule: str = "") -> "CallsReport":
    """A fit as plain figures."""
    import numpy as np

    from mc.calibration import identify, short_name
    from mc.calibration.call_scores import SHOWN
    from mc.report.calibration import FittedFigure, held_out_score
    from mc.report.calibration_calls import CallsReport, FittedSeries

    known = identify(fit.covariance)
    rows = zip(fit.parameters.items, fit.interval().tolist(), strict=True)
    figures = [
        FittedFigure(
            short_name(each), each.paths, each.dimension, each.center, low, value, high, known.learnt(place)
        )
        for place, (each, (low, value, high)) in enumerate(rows)
    ]
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
    ended = fit.convergence
    return CallsReport(
        fit.config.name,
        0.9,
        figures,
        series,
        held_out_score(errors, sizes, np.full(len(errors), np.nan), rule) if left else None,
        fit.closed,
        fit.calls,
        fit.fitted,
        fit.widened,
        ended.losses.tolist(),
        ended.gradient,
        ended.steps,
        ended.outcome,
        ended.agreeing,
        known.sentences([short_name(each) for each in fit.parameters.items]),
    )


def _print(report: "CallsReport", out: Path | None, *, as_json: bool) -> None:
    from mc.report.calibration_calls import calls_json, calls_text

    if as_json:
        print(json.dumps(calls_json(report), allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    text = calls_text(report)
    console.width = max(console.width, min(Console(width=500).measure(text).maximum, 240))
    console.print(text, highlight=False)
    if out is not None:
        console.print(
            f"\nkept in {out}: `tailstep collective` and `tailstep run` take it",
            markup=False,
            highlight=False,
        )
