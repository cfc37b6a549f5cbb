"""`tailstep calibrate`: from measurements to a file whose figures fit them."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from mc.cli.options import Overrides
from mc.config import load_cluster
from mc.config.calibration import (
    CalibrationConfig,
    FitConfig,
    FreeConfig,
    is_calibration,
    load_calibration,
)
from mc.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mc.calibration import Fit
    from mc.report.calibration import CalibrationReport

# Two passes with and without held-out sizes, at three temperatures each.
_PASSES = 12


def calibrate(
    config: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, to be fitted to step times; or a file with a `calibration` block, which options go before.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="The cluster to calibrate: a file, or the name of a shipped one.", show_default=False
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A log or table, as `tailstep import` reads; repeatable.", metavar="FILE", show_default=False
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            help="Path of a figure to fit, such as `tiers.node.link.bandwidth`; repeatable; by default all that the data "
            "depend on.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write the calibrated cluster or experiment (.yaml).",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the fit there, for `tailstep report DIR`.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw measured and predicted times (.svg, .png, .pdf).", show_default=False
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="What the library chose from, where files do not say; repeatable.  [default: ring, tree, in-network]",
            show_default=False,
        ),
    ] = None,
    collective: Annotated[
        str | None, typer.Option(help="The collective, if the files do not say.", show_default=False)
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(help="Ranks that took part, likewise.", min=1, show_default=False)
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="Nodes they were on, likewise.", min=1, show_default=False)
    ] = None,
    starts: Annotated[
        int | None,
        typer.Option(
            help="Descents from different places.  [default: 4]", min=1, max=1000, show_default=False
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Most steps of a descent.  [default: 60]", min=1, max=10_000, show_default=False),
    ] = None,
    refits: Annotated[
        int | None,
        typer.Option(
            "--bootstrap",
            metavar="N",
            help="Intervals from so many refits instead.",
            min=0,
            max=100_000,
            show_default=False,
        ),
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Rows that are kept from the fit and scored: `every 4`, `ranks > 8`, `ranks = 64, 128`, `none`.",
            show_default=False,
        ),
    ] = None,
    forecast: Annotated[
        list[int] | None,
        typer.Option(
            metavar="RANKS",
            help="Forecast step times of so many ranks; repeatable.",
            min=1,
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of starts and refits.  [default: 0]", min=0, max=2**32 - 1, show_default=False),
    ] = None,
    overrides: Overrides = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Fit a cluster to measured collectives, or an experiment to step times, and say how well its figures are known.

    Prints every figure with its prior, its fitted value and a 90 % interval, the errors, the score on what was held
    out, and what the data cannot tell apart.
    """
    from mc.logs import Hints, read_logs
    from mc.report.plot import check_plot
    from mc.results.calibration import check_calibration_folder, write_calibration

    if out is not None:
        _check_out(out)
    if plot is not None:
        check_plot(plot)
    if results is not None:
        check_calibration_folder(results)
    stated = {
        "data": tuple(data or ()),
        "free": tuple(FreeConfig(path=path) for path in free or ()),
        "algorithms": tuple(algorithm or ()),
        "collective": collective,
        "ranks": ranks,
        "nodes": nodes,
        "starts": starts,
        "steps": steps,
        "seed": seed,
        "bootstrap": refits,
        "hold_out": hold_out,
        "forecast": tuple(forecast or ()),
    }
    asked = _asked(config, cluster, {key: value for key, value in stated.items() if value not in (None, ())})
    words = [] if config is None else [config]
    words += [] if cluster is None else ["--cluster", cluster]
    words += [word for each in data or () for word in ("--data", each)]
    words += [word for each in free or () for word in ("--free", each)]
    words += [] if hold_out is None else ["--hold-out", hold_out]
    command = shlex.join(["tailstep", "calibrate", *words])
    if asked.experiment is not None:
        from mc.cli.calibrate_steps import calibrate_experiment

        calibrate_experiment(
            asked.experiment,
            asked.calibration,
            overrides or [],
            command,
            out=out,
            results=results,
            plot=plot,
            as_json=as_json,
        )
        return
    assert asked.cluster is not None
    if asked.calibration.forecast:
        raise InputError("forecast: expected an experiment, whose step times are forecast; got a cluster")
    if asked.calibration.hold_out is not None:
        raise InputError("hold_out: expected an experiment; of collectives every other size is scored")
    fitted, ask = load_cluster(asked.cluster, overrides or ()), asked.calibration
    found = read_logs(ask.data, Hints(collective=ask.collective, ranks=ask.ranks, nodes=ask.nodes))

    from mc.calibration import (
        bootstrap,
        bootstrap_interval,
        calibrated_yaml,
        chosen,
        curves_of,
        fit_curves,
        free_parameters,
        uncorrected,
    )
    from mc.report.fitting import fitting

    curves = curves_of(found.table, fitted, ask.algorithms)
    if ask.free:
        parameters = chosen(fitted, ask.free)
    else:
        fitted = uncorrected(fitted)
        parameters = free_parameters(fitted, curves)
    with fitting(_PASSES) as report:
        fit = fit_curves(
            fitted, curves, parameters, starts=ask.starts, steps=ask.steps, seed=ask.seed, report=report
        )
    intervals, refitted = fit.interval(), None
    if ask.bootstrap:
        refitted = bootstrap(fit, ask.bootstrap, seed=ask.seed)
        intervals = bootstrap_interval(fit, refitted)
    summary = summarised(fit, intervals)
    if out is not None or results is not None:
        text = calibrated_yaml(fit, intervals, command, refitted)
        if out is not None:
            out.write_text(text, encoding="utf-8")
        if results is not None:
            from mc.report.calibration import calibration_json

            write_calibration(results, calibration_json(summary), command, text, ask.data)
    if plot is not None:
        from mc.report.calibration_plot import plot_calibration

        plot_calibration(plot, summary)
    _print(summary, out, as_json=as_json)


def _asked(path: str | None, cluster: str | None, stated: dict[str, Any]) -> CalibrationConfig:
    """What a file asks for, and what the command line says instead."""
    if path is not None and is_calibration(path):
        found = load_calibration(path)
        if cluster is not None and found.experiment is not None:
            raise InputError(
                f"expected a cluster or an experiment; got --cluster and the experiment of {path}"
            )
        asked = FitConfig.model_validate({**found.calibration.model_dump(), **stated})
        return found.model_copy(update={"cluster": cluster or found.cluster, "calibration": asked})
    if path is not None and cluster is not None:
        raise InputError(f"expected --cluster, or an experiment; got both: --cluster {cluster} and {path}")
    missing = [
        name
        for name, given in (("--cluster or an experiment", path or cluster), ("--data", stated.get("data")))
        if not given
    ]
    if missing:
        raise InputError(
            f"expected {' and '.join(missing)}, or a file with a `calibration` block; got neither"
        )
    try:
        asked = FitConfig(**stated)
    except ValidationError as error:
        raise InputError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None
    return CalibrationConfig(cluster=cluster, experiment=path, calibration=asked)


def summarised(fit: "Fit", intervals: "NDArray[np.float64]") -> "CalibrationReport":
    """A fit as plain figures, with the intervals that were asked for."""
    import numpy as np

    from mc.calibration import identify, predict_curves, short_name
    from mc.config.axes import count as count_of
    from mc.config.bus_bandwidth import bus_factor
    from mc.report.calibration import CalibrationReport, FittedCurve, FittedFigure

    known = identify(fit.covariance)
    items = zip(fit.parameters.items, intervals.tolist(), strict=True)
    figures = [
        FittedFigure(
            short_name(each), each.paths, each.dimension, each.center, low, value, high, known.learnt(place)
        )
        for place, (each, (low, value, high)) in enumerate(items)
    ]
    prior = predict_curves(fit.config, fit.curves)
    curves = [
        FittedCurve(
            curve.label,
            curve.sizes.tolist(),
            curve.times.tolist(),
            before.tolist(),
            after.tolist(),
            bus_factor(
                curve.collective, curve.ranks if isinstance(curve.ranks, int) else count_of(curve.ranks)
            ),
        )
        for curve, before, after in zip(fit.curves, prior, fit.predicted, strict=True)
    ]
    score = fit.held_out
    ended = fit.convergence
    return CalibrationReport(
        fit.config.name,
        0.9,
        figures,
        curves,
        fit.sigma,
        None
        if score is None
        else (
            float(np.median(score.errors)),
            float(score.errors.mean()),
            float(np.median(score.line)),
            float(score.line.mean()),
        ),
        [float(each) for each in ended.losses],
        ended.gradient,
        ended.steps,
        ended.outcome,
        ended.agreeing,
        known.sentences([short_name(each) for each in fit.parameters.items]),
    )


def _check_out(out: Path) -> None:
    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out: expected a file that ends in .yaml; got {out}")
    if not out.parent.is_dir():
        raise InputError(f"--out: {out}: no such directory")


def _print(summary: "CalibrationReport", out: Path | None, *, as_json: bool) -> None:
    from mc.report.calibration import calibration_json, calibration_text

    if as_json:
        print(json.dumps(calibration_json(summary), allow_nan=False))
        return
    from rich.console import Console

    console = Console()
    text = calibration_text(summary)
    console.width = max(console.width, min(Console(width=500).measure(text).maximum, 160))
    console.print(text, highlight=False)
    if out is not None:
        console.print(
            f"\nkept in {out}: `tailstep collective` and `tailstep run` take it",
            markup=False,
            highlight=False,
        )
