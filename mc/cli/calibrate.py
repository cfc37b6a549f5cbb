"""`tailstep calibrate`: from measurements to a file whose figures fit them."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from mc.cli.calibrated import Output
from mc.cli.options import Overrides
from mc.config.calibration import (
    CalibrationConfig,
    FitConfig,
    FreeConfig,
    is_calibration,
    load_calibration,
)
from mc.errors import InputError


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
    posterior: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="`laplace`, or `nuts`: intervals from draws of the posterior, with the extra `bayes`.  [default: laplace]",
            show_default=False,
        ),
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Rows that are kept from the fit and scored: `every 4`, `20 %`, `ranks > 8`, `ranks = 64, 128`, `nodes > 4`, "
            "`size > 16 MiB`, `file = b.log`, `none`. Without, of collectives every other size is scored, and all fitted.",
            show_default=False,
        ),
    ] = None,
    second_network: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Try another network for collectives of so many bytes or more, with figures of its own, and keep it if it forecasts "
            "better.",
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
    scaling: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="`weak`: a replica of a transformer keeps its work on other numbers of ranks; `strong`: all do.  [default: weak]",
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
    from mc.report.pictures.base import check_plot
    from mc.results.calibration import check_calibration_folder

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
        "scaling": scaling,
        "second_network": second_network,
        "posterior": posterior,
    }
    asked = _asked(config, cluster, {key: value for key, value in stated.items() if value not in (None, ())})
    words = [] if config is None else [config]
    words += [] if cluster is None else ["--cluster", cluster]
    words += [word for each in data or () for word in ("--data", each)]
    words += [word for each in free or () for word in ("--free", each)]
    words += [] if hold_out is None else ["--hold-out", hold_out]
    words += [] if scaling is None else ["--scaling", scaling]
    words += [] if posterior is None else ["--posterior", posterior]
    words += [] if second_network is None else ["--second-network", second_network]
    output = Output(shlex.join(["tailstep", "calibrate", *words]), out, results, plot, as_json)
    if asked.calibration.posterior == "nuts" and asked.calibration.bootstrap:
        raise InputError("posterior: expected one way to find intervals; got `nuts` and `bootstrap`")
    if asked.experiment is not None:
        if asked.calibration.posterior == "nuts":
            raise InputError(
                "posterior: expected `laplace` for step times; `nuts` is for curves of collectives"
            )
        if asked.calibration.second_network is not None:
            raise InputError("second_network: expected a cluster, fitted to collectives; got an experiment")
        from mc.cli.calibrate_steps import calibrate_experiment

        calibrate_experiment(
            asked.experiment,
            asked.calibration,
            overrides or [],
            output,
        )
        return
    assert asked.cluster is not None
    if asked.calibration.forecast:
        raise InputError("forecast: expected an experiment, whose step times are forecast; got a cluster")
    if asked.calibration.scaling != "weak":
        raise InputError("scaling: expected an experiment whose model is a transformer; got a cluster")
    from mc.cli.calibrate_curves import calibrate_cluster

    calibrate_cluster(
        asked.cluster,
        asked.calibration,
        overrides or [],
        output,
    )


def _asked(path: str | None, cluster: str | None, stated: dict[str, Any]) -> CalibrationConfig:
    """What a file asks for, and what the command line says instead."""
    if path is not None and is_calibration(path):
        found = load_calibration(path)
        if cluster is not None and found.experiment is not None:
            raise InputError(
                f"expected a cluster or an experiment; got --cluster and the experiment of {path}"
            )
        before = found.calibration.model_dump(mode="json", exclude_none=True)
        asked = FitConfig.model_validate({**before, **stated})
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
        first = error.errors()[0]
        where = "".join(f"{each}: " for each in first["loc"])
        raise InputError(
            f"{where}{str(first['msg']).removeprefix('Value error, ')}".replace(
                "hold_out: hold_out", "hold_out"
            )
        ) from None
    return CalibrationConfig(cluster=cluster, experiment=path, calibration=asked)


def _check_out(out: Path) -> None:
    if out.suffix not in (".yaml", ".yml"):
        raise InputError(f"--out: expected a file that ends in .yaml; got {out}")
    if not out.parent.is_dir():
        raise InputError(f"--out: {out}: no such directory")
