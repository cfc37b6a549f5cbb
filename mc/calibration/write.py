"""The calibrated cluster as a file: complete, in the schema of clusters, each fitted figure with its interval.

The file is the resolved configuration, so it stands alone and every verb that takes a cluster takes it. What a fit found
out about a figure stands behind it as a comment; what was fitted to what, and how well, at the top. What is left unknown of all of
them together is the block `posterior`, which forecasts read.
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML

from mc.calibration.fit import Fit
from mc.calibration.fitted import LEVEL
from mc.calibration.identify import Identified, identify
from mc.calibration.parameters import Parameter
from mc.config import ClusterConfig, ExperimentConfig, resolved_yaml
from mc.config.figures import figure_at
from mc.config.posterior import PosteriorConfig, UncertainConfig, both
from mc.document import StrictModel
from mc.units import format_quantity

_WIDTH = 4096


def calibrated_yaml(
    fit: Fit,
    intervals: NDArray[np.float64],
    command: str | None = None,
    refits: NDArray[np.float64] | None = None,
    how: str | None = None,
) -> str:
    """The text of the file.

    Args:
        fit: what to write.
        intervals: low, fitted and high of every parameter.
        command: that makes it anew.
        refits: coordinates of refits, [draws, parameters], which the posterior then has its covariance from; Laplace's if left
            out.
        how: the fit's covariance was found, where it is not Laplace's.
    """
    cluster = fit.calibrated
    cluster = cluster.model_copy(update={"posterior": posterior(fit, cluster, refits, how)})
    return annotated_yaml(cluster, fit.parameters.items, intervals, fit.known, _heading(fit, command))


def annotated_yaml(
    config: ClusterConfig | ExperimentConfig,
    items: Sequence[Parameter],
    intervals: NDArray[np.float64],
    known: Identified,
    heading: Sequence[str],
) -> str:
    """A configuration as a file, with what is known of its fitted figures behind them, below a heading of some lines."""
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = _WIDTH
    document = yaml.load(resolved_yaml(config))
    for each, note in zip(items, _figure_notes(items, intervals, known), strict=True):
        for path in each.paths:
            _comment(document, path.split("."), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return "\n".join([*(f"# {line}" for line in heading), stream.getvalue()])


def annotated_experiment(
    experiment: ExperimentConfig,
    items: Sequence[Parameter],
    intervals: NDArray[np.float64],
    covariance: NDArray[np.float64],
    source: str,
    heading: Sequence[str],
    products: tuple[NDArray[np.float64], Mapping[int, str]] | None = None,
) -> str:
    """A calibrated experiment as a file, with what is known of its fitted figures behind them, below a heading of some lines.

    Args:
        experiment: with the fitted figures.
        items: what was free.
        intervals: low, fitted and high of each.
        covariance: of the posterior, in standardised coordinates.
        source: of the posterior, in words.
        heading: without comment signs.
        products: a covariance in coordinates in which figures at some places are their products with the factor at a path.
    """
    own, over = products or (covariance, {})
    lower = np.asarray(np.linalg.cholesky(own), np.float64)
    found = PosteriorConfig(source=source, parameters=uncertain(items, lower, experiment, over))
    whole = experiment.model_copy(update={"posterior": both(experiment.posterior, found)})
    return annotated_yaml(whole, items, intervals, identify(covariance), heading)


def named(sources: Iterable[str]) -> str:
    """Files that times are from, for people."""
    return ", ".join(dict.fromkeys(each for each in sources if each)) or "times that name no file"


def posterior(
    fit: Fit,
    cluster: ClusterConfig,
    refits: NDArray[np.float64] | None = None,
    how: str | None = None,
) -> PosteriorConfig:
    """What the fit leaves unknown of the figures of the calibrated cluster.

    Args:
        fit: the fit.
        cluster: that it found.
        refits: as for `calibrated_yaml`.
        how: likewise.
    """
    if refits is None:
        covariance, how = fit.covariance, how or "Laplace's approximation"
    else:
        covariance, how = np.atleast_2d(np.cov(refits, rowvar=False)), f"{len(refits)} refits"
    lower = np.asarray(np.linalg.cholesky(covariance), np.float64)
    return PosteriorConfig(
        source=f"{how}, from {named(_sources(fit))}",
        parameters=uncertain(fit.parameters.items, lower, cluster),
    )


def uncertain(
    items: Sequence[Parameter],
    lower: NDArray[np.float64],
    config: StrictModel,
    over: Mapping[int, str] = MappingProxyType({}),
) -> tuple[UncertainConfig, ...]:
    """Fitted figures of a cluster or an experiment with the rows of a Cholesky factor of their covariance."""
    return tuple(
        UncertainConfig(
            paths=each.paths,
            space=each.space,
            mean=float(f"{_coordinate(each, items[:place], config, over.get(place)):.10g}"),
            factor=tuple(float(f"{each.spread * entry:.6g}") for entry in row[: place + 1]),
            group=each.group or None,
            rest=each.rest or None,
            limit=each.limit,
            over=over.get(place),
        )
        for place, (each, row) in enumerate(zip(items, lower, strict=True))
    )


def _figure_notes(items: Sequence[Parameter], intervals: NDArray[np.float64], known: Identified) -> list[str]:
    """What stands behind each fitted figure: its interval, its prior, and where it is from."""
    source = {
        "data": "from the data",
        "both": "from data and prior",
        "prior": "the prior: data leave it free",
    }
    notes = []
    for place, (each, (low, _, high)) in enumerate(zip(items, intervals, strict=True)):
        ends = (format_quantity(float(value), each.dimension, digits=3) for value in (low, high, each.center))
        first, last, prior = ends
        notes.append(f"{100 * LEVEL:.0f} %: {first} .. {last}, prior {prior}; {source[known.learnt(place)]}")
    return notes


def _coordinate(
    parameter: Parameter, before: Sequence[Parameter], config: StrictModel, over: str | None = None
) -> float:
    """The fitted figure without its borders; `before` are the parameters before it."""
    value = figure_at(config, parameter.paths[0])
    if over is not None:
        factor = figure_at(config, over)
        value = value / factor if parameter.space == "share" else value * factor
    match parameter.space:
        case "positive":
            return math.log(value)
        case "share":
            # It may be rounded to the limit.
            return math.log(value / max(parameter.limit - value, 1e-9 * parameter.limit))
        case "simplex":
            return math.log(value / max(figure_at(config, parameter.rest), 1e-12))
        case _:
            below = [each for each in before if parameter.group and each.group == parameter.group]
            least = figure_at(config, below[-1].paths[0]) if below else 1.0
            return math.log(max(value - least, 1e-9))


def _sources(fit: Fit) -> list[str]:
    return [source for curve in fit.curves for source in curve.sources]


def _heading(fit: Fit, command: str | None) -> Sequence[str]:
    rows = sum(len(curve.sizes) for curve in fit.curves)
    files = _sources(fit)
    lines = [
        f"{fit.config.name}, calibrated to {rows} measured times"
        + (f" from {named(files)}." if files else ".")
    ]
    lines += [f"  {curve.label}: {len(curve.sizes)} sizes" for curve in fit.curves]
    lines.append(f"Scatter around the model: {100 * fit.sigma:.1f} %.")
    if fit.held_out is not None:
        found = fit.held_out.errors
        what = "Rows that were not fitted" if fit.unseen else "Sizes held out"
        lines.append(
            f"{what}: median error {100 * float(np.median(found)):.1f} %, mean {100 * found.mean():.1f} %."
        )
    return [*lines, *([f"Made by: {command}"] if command else [])]


def _comment(node: Any, keys: list[str], text: str) -> None:
    """Puts a text behind the figure below some keys."""
    *way, last = keys
    for key in way:
        node = _item(node, key) if isinstance(node, list) else node[key]
    node.yaml_add_eol_comment(text, last)


def _item(items: list[Any], key: str) -> Any:
    return next((item for item in items if item.get("name") == key), None) or items[int(key)]
