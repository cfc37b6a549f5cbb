"""How long does a step really take when thousands of chips must wait for the slowest of them?

The public names of the package, each looked up when it is first used (PEP 562): `import mc` costs nothing,
and the commands that only read files never import JAX. The imports under `TYPE_CHECKING` are for editors
and type checkers, `_NAMES` says the same to the interpreter; `tests/test_package.py` holds the two
together. What is not named here is imported from its package: `from mc.catalog import chip`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mc.advise.worth import worth as worth
    from mc.api import calibrate as calibrate
    from mc.api import difference as difference
    from mc.api import on_cluster as on_cluster
    from mc.api import run_sweep as run_sweep
    from mc.api import search_plans as search_plans
    from mc.api import to_xarray as to_xarray
    from mc.api import write_cluster as write_cluster
    from mc.catalog import chip as chip
    from mc.catalog import link as link
    from mc.collectives import AbstractAlgorithm as AbstractAlgorithm
    from mc.collectives import CollectiveError as CollectiveError
    from mc.collectives import Cost as Cost
    from mc.collectives import Phase as Phase
    from mc.collectives import Row as Row
    from mc.collectives import algorithms as algorithms
    from mc.collectives import bus_factor as bus_factor
    from mc.collectives import crossover_size as crossover_size
    from mc.collectives import evaluate as evaluate
    from mc.collectives import phases as phases
    from mc.collectives import select as select
    from mc.config import ExperimentConfig as ExperimentConfig
    from mc.config import load_cluster as load_cluster
    from mc.config import load_experiment as load_experiment
    from mc.config import load_model as load_model
    from mc.config import load_plan as load_plan
    from mc.config.load_sweep import load_sweep as load_sweep
    from mc.delays import AbstractDelay as AbstractDelay
    from mc.delays import BetaLevels as BetaLevels
    from mc.delays import Constant as Constant
    from mc.delays import Discrete as Discrete
    from mc.delays import Empirical as Empirical
    from mc.delays import Exponential as Exponential
    from mc.delays import Gamma as Gamma
    from mc.delays import GeneralisedPareto as GeneralisedPareto
    from mc.delays import Latest as Latest
    from mc.delays import Lognormal as Lognormal
    from mc.delays import Method as Method
    from mc.delays import Mixture as Mixture
    from mc.delays import OrderStatistic as OrderStatistic
    from mc.delays import ParameterError as ParameterError
    from mc.delays import Product as Product
    from mc.delays import Scaled as Scaled
    from mc.delays import Shifted as Shifted
    from mc.delays import Slowest as Slowest
    from mc.delays import SlowestOf as SlowestOf
    from mc.delays import Sum as Sum
    from mc.delays import Tabulated as Tabulated
    from mc.delays import Weibull as Weibull
    from mc.delays import add as add
    from mc.delays import beta_levels as beta_levels
    from mc.delays import build_delay as build_delay
    from mc.delays import draw as draw
    from mc.delays import multiply as multiply
    from mc.delays import on_grid as on_grid
    from mc.delays import sampler as sampler
    from mc.delays import shared_fate as shared_fate
    from mc.delays import table_error as table_error
    from mc.delays import tabulate as tabulate
    from mc.delays import total as total
    from mc.delays import wait_for_all_but as wait_for_all_but
    from mc.delays import with_inverse as with_inverse
    from mc.delays import with_pauses as with_pauses
    from mc.experiment import build_step as build_step
    from mc.experiment import run as run
    from mc.experiment.scale import scale as scale
    from mc.experiment.trace import trace as trace
    from mc.fabric import Cluster as Cluster
    from mc.fabric import Extent as Extent
    from mc.fabric import FabricError as FabricError
    from mc.fabric import FullyConnected as FullyConnected
    from mc.fabric import Level as Level
    from mc.fabric import Link as Link
    from mc.fabric import Tier as Tier
    from mc.fabric import Torus as Torus
    from mc.fabric import Tree as Tree
    from mc.fabric import Variation as Variation
    from mc.fabric import build_cluster as build_cluster
    from mc.fabric import span as span
    from mc.logs import Hints as Hints
    from mc.logs import read_logs as read_logs
    from mc.results import RunResult as RunResult
    from mc.results import read_run as read_run
    from mc.step import Step as Step
    from mc.units import Dimension as Dimension
    from mc.units import UnitError as UnitError
    from mc.units import format_quantity as format_quantity
    from mc.units import parse as parse

_NAMES = {
    "mc.advise.worth": ("worth",),
    "mc.api": (
        "calibrate",
        "difference",
        "on_cluster",
        "run_sweep",
        "search_plans",
        "to_xarray",
        "write_cluster",
    ),
    "mc.catalog": ("chip", "link"),
    "mc.collectives": (
        "AbstractAlgorithm",
        "CollectiveError",
        "Cost",
        "Phase",
        "Row",
        "algorithms",
        "bus_factor",
        "crossover_size",
        "evaluate",
        "phases",
        "select",
    ),
    "mc.config": ("ExperimentConfig", "load_cluster", "load_experiment", "load_model", "load_plan"),
    "mc.config.load_sweep": ("load_sweep",),
    "mc.delays": (
        "AbstractDelay",
        "BetaLevels",
        "Constant",
        "Discrete",
        "Empirical",
        "Exponential",
        "Gamma",
        "GeneralisedPareto",
        "Latest",
        "Lognormal",
        "Method",
        "Mixture",
        "OrderStatistic",
        "ParameterError",
        "Product",
        "Scaled",
        "Shifted",
        "Slowest",
        "SlowestOf",
        "Sum",
        "Tabulated",
        "Weibull",
        "add",
        "beta_levels",
        "build_delay",
        "draw",
        "multiply",
        "on_grid",
        "sampler",
        "shared_fate",
        "table_error",
        "tabulate",
        "total",
        "wait_for_all_but",
        "with_inverse",
        "with_pauses",
    ),
    "mc.experiment": ("build_step", "run"),
    "mc.experiment.scale": ("scale",),
    "mc.experiment.trace": ("trace",),
    "mc.fabric": (
        "Cluster",
        "Extent",
        "FabricError",
        "FullyConnected",
        "Level",
        "Link",
        "Tier",
        "Torus",
        "Tree",
        "Variation",
        "build_cluster",
        "span",
    ),
    "mc.logs": ("Hints", "read_logs"),
    "mc.results": ("RunResult", "read_run"),
    "mc.step": ("Step",),
    "mc.units": ("Dimension", "UnitError", "format_quantity", "parse"),
}
_HOME = {name: package for package, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its package; `__version__`, from the metadata of the installed distribution."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tailstep")
    if name not in _HOME:
        raise AttributeError(f"module 'mc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "__version__"})
