"""Forecasts with intervals from what a calibration left unknown.

Each draw of the posterior is a cluster, and each cluster has its own forecast; the interval of a number is that of its values over
draws. All clusters meet the same random numbers, so sampling is not in it: that is the other interval, and the two are shown apart.
Draws, and not derivatives times standard deviations: a fit leaves some figures to factors of two, and where an
algorithm takes over from another there is a kink (docs/calibration.md has both side by side). They are stratified in
each cause (Latin hypercubes: McKay, Beckman, Conover, *Technometrics* 21, 1979).

Where only the links of tiers are uncertain, computing is that of the run. A transformer's steps are not drawn again: they are
shifted by what the step without noise changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray
from scipy import stats

from mc.collectives import Row, evaluate
from mc.collectives.stages import HIERARCHICAL, Stage
from mc.config import ClusterConfig, ExperimentConfig
from mc.config.figures import with_figures
from mc.config.mitigations import MitigationsConfig
from mc.config.posterior import PosteriorConfig
from mc.estimate import QUANTILES
from mc.experiment.build import build, stages_of
from mc.experiment.quiet_step import build_quiet
from mc.experiment.run import draw_steps
from mc.experiment.steps_under import Cells, cells_of, exchange_of, for_each, times_of
from mc.fabric import build_cluster
from mc.results import ModelIntervals, RunResult
from mc.step import Classes

DRAWS = 100
# Of a transformer, each of which is a step to be worked out anew.
_FEW_DRAWS = 40
# Steps of each draw, at most about.
_STEPS = 20_000
_LINKS = "cluster.tiers."
# Figures that say how many chips are slow, or links are in which state.
_COUNTED = ("fraction", "probability", "persistence", "holding")

Floats = NDArray[np.float64]
Figures = list[dict[str, float]]


def draws_of(posterior: PosteriorConfig, count: int, seed: int) -> Figures:
    """Figures by path, for so many draws of a posterior."""
    latin = stats.qmc.LatinHypercube(posterior.causes, rng=np.random.default_rng(seed))
    return [posterior.draw(z) for z in stats.norm.ppf(latin.random(count)).tolist()]


def means_of(posterior: PosteriorConfig) -> dict[str, float]:
    """Figures at the means of a posterior."""
    return posterior.figures([each.mean for each in posterior.parameters])


def with_model(config: ExperimentConfig, result: RunResult) -> RunResult:
    """A run with intervals from what is not known of its figures; as it is where all is known.

    Args:
        config: of the run.
        result: of the run.

    Raises:
        InputError: a draw of the posterior makes no experiment that can be carried out.
    """
    posterior = config.uncertain
    if posterior is None or not posterior.parameters or config.serving is not None:
        return result
    is_training = config.model.transformer is not None
    found = (_shifted if is_training else _drawn)(config, posterior, result)
    level = result.estimates.confidence
    ends = {}
    for name, estimate in result.estimates.items():
        low, high = _ends(found[name], level)
        ends[name] = (estimate.value + low, estimate.value + high)
    method = "shifted" if is_training else "drawn"
    draws = len(next(iter(found.values())))
    model = ModelIntervals(posterior.source, len(posterior.parameters), draws, level, ends, method)
    return replace(result, model=model)


def _drawn(config: ExperimentConfig, posterior: PosteriorConfig, result: RunResult) -> dict[str, Floats]:
    """By how much each number differs from that at the means, for each draw."""
    if config.mitigations != MitigationsConfig():
        return _redrawn(config, posterior)
    figures = [means_of(posterior), *draws_of(posterior, DRAWS, config.run.seed)]
    paths = list(figures[0])
    built = build(config)
    cells = cells_of(config, built, _STEPS)
    only_links = all(path.startswith(_LINKS) for path in paths)
    computing = result.samples * 0.0
    if only_links and result.samples.shape[0] == cells.realisations:
        computing = (result.parts["compute"] + result.parts["straggler_wait"])[:, : cells.size]
    else:
        only_links = False
    metrics: list[dict[str, float]] = [{} for _ in figures]
    for stages, members in _by_stages(config, figures).items():
        make = exchange_of if only_links else times_of
        sets = _sets(config, cells, [figures[member] for member in members])

        def times_for(own: _Set, make: Any = make, stages: tuple[Stage, ...] = stages) -> Array:
            met = replace(cells, classes=own.classes or cells.classes, counts=own.counts or cells.counts)
            return make(config, met, stages, paths)(own.values)

        drawn = for_each(times_for, sets)
        for member, times in zip(members, drawn, strict=True):
            metrics[member] = metrics_of(times + computing if only_links else times)
    return {name: np.array([each[name] - metrics[0][name] for each in metrics[1:]]) for name in metrics[0]}


class _Set(NamedTuple):
    """Figures in the order of their paths; which chips are slow and how many links are in which state, if that depends on them."""

    values: Array | Floats
    classes: Classes | None
    counts: tuple[Array, ...] | None


def _sets(config: ExperimentConfig, cells: Cells, figures: Figures) -> _Set:
    """Several sets of figures along the leading axis of all leaves, which are met by the same random numbers."""
    values = np.array([list(each.values()) for each in figures])
    if not any(path.split(".")[-1] in _COUNTED for path in figures[0]):
        return _Set(values, None, None)
    met = []
    for each in figures:
        own = with_figures(config, each)
        met.append(cells_of(own, build(own), cells.realisations * cells.size))
    return _Set(
        values,
        *jax.tree.map(lambda *leaves: np.stack(leaves), *((each.classes, each.counts) for each in met)),
    )


def _redrawn(config: ExperimentConfig, posterior: PosteriorConfig) -> dict[str, Floats]:
    """The same by whole runs, one for each draw: what mitigations make of steps is not built with traced figures."""
    run = config.run.model_copy(update={"samples": min(config.run.samples, _STEPS)})
    metrics = []
    for each in [means_of(posterior), *draws_of(posterior, _FEW_DRAWS, config.run.seed)]:
        own = with_figures(config, each)
        metrics.append(metrics_of(draw_steps(own.model_copy(update={"run": run}))))
    return {name: np.array([each[name] - metrics[0][name] for each in metrics[1:]]) for name in metrics[0]}


def _by_stages(config: ExperimentConfig, figures: Figures) -> Mapping[tuple[Stage, ...], list[int]]:
    """Draws by how their exchange is carried out: what is left open is chosen anew for each."""
    found: dict[tuple[Stage, ...], list[int]] = {}
    for number, each in enumerate(figures):
        own = with_figures(config, each)
        chosen = tuple(stages_of(own, build_cluster(own.cluster)))
        found.setdefault(chosen, []).append(number)
    return found


def metrics_of(times: Floats) -> dict[str, float]:
    """Mean and quantiles of step times, as a run estimates them."""
    ordered = np.sort(times, axis=None)
    found = {"mean": float(times.mean())}
    for name, probability in QUANTILES.items():
        found[name] = float(ordered[max(int(np.ceil(ordered.size * probability - 1e-9)), 1) - 1])
    return found


def _shifted(config: ExperimentConfig, posterior: PosteriorConfig, result: RunResult) -> dict[str, Floats]:
    steps = []
    for each in [means_of(posterior), *draws_of(posterior, _FEW_DRAWS, config.run.seed)]:
        steps.append(float(build_quiet(with_figures(config, each)).breakdown.step))
    shift = np.array(steps[1:]) - steps[0]
    return {name: shift for name, _ in result.estimates.items()}


def collective_intervals(
    config: ClusterConfig,
    rows: Sequence[Row],
    collective: str,
    ranks: int,
    size: float,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> list[tuple[float, float] | None]:
    """Intervals of predicted times with idle links; None where all is known.

    Args:
        config: the cluster, with its posterior.
        rows: whose times.
        collective: such as `all-reduce`.
        ranks: consecutive ranks.
        size: bytes.
        level: of the intervals.
        seed: of the draws.
    """
    posterior = config.posterior
    if posterior is None or not posterior.parameters:
        return [None] * len(rows)
    times: dict[tuple[str, str], list[float]] = {}
    with jax.enable_x64(True):
        for each in draws_of(posterior, DRAWS, seed):
            cluster = build_cluster(with_figures(config, each))
            for row in evaluate(cluster, collective, ranks, size, protocol="all"):
                times.setdefault(_kind_of(row), []).append(row.time)
    return [_ends(times[_kind_of(row)], level) for row in rows]


def _kind_of(row: Row) -> tuple[str, str]:
    """Algorithm and protocol, but for the hierarchical, whose tiers choose for themselves."""
    return row.algorithm, "" if row.algorithm == HIERARCHICAL else row.protocol


def _ends(times: Sequence[float] | Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(times, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
