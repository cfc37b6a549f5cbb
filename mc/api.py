"""The jobs of the command line in a few typed lines of Python.

    import mc

    result = mc.run(mc.load_experiment("quickstart", ["plan.ranks=128"]))
    table = mc.run_sweep("pauses.yaml")
    fit = mc.calibrate("dgx-h100-superpod", "nccl.log")
    again = mc.run(mc.on_cluster(mc.load_experiment("quickstart", ["plan.ranks=128"]), fit.calibrated))

What a verb does beyond that is words on a terminal. Functions that one package has are re-exported by `mc` as they
are; here is what takes several.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from mc.advise.search import search as search_plans  # noqa: F401 (public as this)
from mc.calibration import Fit, calibrated_yaml, chosen, curves_of, fit_curves, free_parameters, uncorrected
from mc.config import ClusterConfig, ExperimentConfig, load_cluster
from mc.config.calibration import FreeConfig
from mc.config.load_sweep import Sweep, check_cells, load_sweep
from mc.experiment import run
from mc.logs import Hints, read_logs
from mc.results.comparison import Comparison, compare
from mc.sweep.sweep import run_sweep as _run_sweep
from mc.sweep.to_xarray import to_xarray as to_xarray

PathLike = str | os.PathLike[str]


def on_cluster(experiment: ExperimentConfig, cluster: ClusterConfig) -> ExperimentConfig:
    """The experiment on another cluster, such as a calibrated one; raises ConfigError if it does not fit there."""
    content = {name: getattr(experiment, name) for name in type(experiment).model_fields}
    return ExperimentConfig.model_validate(content | {"cluster": cluster})


def run_sweep(
    sweep: Sweep | PathLike,
    overrides: Sequence[str] = (),
    *,
    out: PathLike | None = None,
    resume: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> pa.Table:
    """Evaluate the cells of a sweep in this process.

    Args:
        sweep: as loaded, or its file, or a shipped one by name.
        overrides: of the file, as after `--set`.
        out: a folder to keep the rows in as well.
        resume: go on with what is in the folder.
        advance: is told how many more cells are done.

    Returns:
        A row per cell that was evaluated now: paths of the axes, quantiles with intervals, parts; see docs/sweeps.md.

    Raises:
        ConfigError: the file, or a cell, is wrong; before anything runs.
    """
    found = sweep if isinstance(sweep, Sweep) else load_sweep(sweep, overrides)
    check_cells(found)
    tables: list[pa.Table] = []
    _run_sweep(found, out=out, resume=resume, observe=tables.append, advance=advance)
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="default").sort_by("cell")


def calibrate(
    cluster: ClusterConfig | PathLike,
    *data: PathLike,
    free: Sequence[str] = (),
    collective: str | None = None,
    ranks: int | None = None,
    nodes: int | None = None,
    algorithms: Sequence[str] = ("ring", "tree", "in-network"),
    starts: int = 4,
    steps: int = 60,
    seed: int = 0,
) -> Fit:
    """Fit the figures of a cluster to measured collectives.

    Args:
        cluster: where it starts; a configuration, a file, or a shipped one by name.
        data: logs or tables, as `tailstep import` reads them.
        free: paths of the figures to fit; all that the data depend on if left out.
        collective: which, if the files do not say.
        ranks: that took part, likewise.
        nodes: they were on, likewise.
        algorithms: what the library chose from, likewise.
        starts: descents from different places.
        steps: at most so many per descent.
        seed: of the starts.

    Returns:
        The fit: `calibrated` is the cluster, `interval()` its figures, `held_out` the score on sizes not seen.

    Raises:
        InputError: data that cannot be read or used, paths that do not exist.
    """
    config = cluster if isinstance(cluster, ClusterConfig) else load_cluster(cluster)
    found = read_logs([Path(each) for each in data], Hints(collective=collective, ranks=ranks, nodes=nodes))
    curves = curves_of(found.table, config, tuple(algorithms))
    if free:
        parameters = chosen(config, tuple(FreeConfig(path=path) for path in free))
    else:
        config = uncorrected(config)
        parameters = free_parameters(config, curves)
    return fit_curves(config, curves, parameters, starts=starts, steps=steps, seed=seed)


def write_cluster(fit: Fit, file: PathLike) -> None:
    """Keep a calibrated cluster as a file, with the interval of each figure beside it."""
    Path(file).write_text(calibrated_yaml(fit, fit.interval()), encoding="utf-8")


def difference(first: ExperimentConfig, second: ExperimentConfig) -> Comparison:
    """What differs between two experiments under the same noise: that of the first, with its `run` block."""
    second = second.model_copy(update={"run": first.run})
    return compare(run(first), run(second))
