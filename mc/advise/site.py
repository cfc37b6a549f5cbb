"""The largest cluster that a facility feeds, and the best plan on it.

A facility has to feed what a cluster draws while all chips compute (`mc.energy.design`), so with a power P for each chip

    chips = budget / (PUE · P),

in whole nodes and whole replicas of the plan as written. A plan needs numbers of ranks that divide: of the last 2 % the job
takes the multiple of the highest power of two. All plans for so many are searched: for the shortest step, or for the fewest
joules,

    E = (idle + host + networks)·T + (power − idle)·C,

where C, the seconds that a chip computes, is no less than what the model's FLOP take at the part of the peak that is reached: so
bounds on T are bounds on E. Links draw the same whether bits move or not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mc.advise.evaluated import STEP_TIME, Evaluated, Objective, SearchResult
from mc.advise.search import plans_in, search
from mc.config import ExperimentConfig
from mc.energy import EnergyError, Facility, StepEnergy, chips_within, design
from mc.experiment.energy import plan_energy, unit
from mc.experiment.scale import Mode, at_size
from mc.training import build_chip
from mc.transformer import build_transformer, flops

Advance = Callable[[int], None]
Wanted = Literal["time", "energy"]
# Of the chips, what may be left out so that more numbers divide the rest.
SPARED = 0.02


@dataclass(frozen=True)
class Job:
    """What fills a facility.

    Attributes:
        facility: the site.
        design: a second of all its chips at their design power.
        config: the experiment on the ranks of the job.
    """

    facility: Facility
    design: StepEnergy
    config: ExperimentConfig

    @property
    def chips(self) -> int:
        """That the facility feeds."""
        return self.design.ranks


@dataclass(frozen=True)
class Planned:
    """A plan with its energy."""

    found: Evaluated
    energy: StepEnergy


@dataclass(frozen=True)
class Site:
    """The best plans on the largest cluster.

    Attributes:
        job: that fills the facility.
        wanted: what was searched for.
        plans: the best, the best first.
        written: the plan of the file; None if it cannot be.
        search: what became of all plans.
    """

    job: Job
    wanted: Wanted
    plans: tuple[Planned, ...]
    written: Planned | None
    search: SearchResult


def fill(config: ExperimentConfig, facility: Facility, mode: Mode = "weak") -> Job:
    """The largest job under a facility's budget.

    Args:
        config: the experiment.
        facility: the site.
        mode: whether the global batch grows with the chips (`weak`) or stays.

    Raises:
        InputError: the cluster lacks a power, or the facility does not feed even one replica.
    """
    whole = unit(config)
    chips = chips_within(facility, design(config.cluster).watts_per_rank, whole)
    if not chips:
        raise EnergyError(
            f"budget: expected the power of {whole:,} chips, whole nodes and whole replicas, or more; "
            f"got {facility.budget:g} W"
        )
    sized, _ = at_size(config, job_size(chips, whole), mode)
    return Job(facility, design(config.cluster, chips), sized)


def job_size(chips: int, whole: int) -> int:
    """Of the multiples of `whole` in the last 2 % of `chips`, the largest of the highest power of two."""
    found, factor = chips // whole * whole, 1
    while chips // (whole * factor) * whole * factor >= (1 - SPARED) * chips:
        found = chips // (whole * factor) * whole * factor
        factor *= 2
    return found


def plans_of(job: Job) -> int:
    """How many combinations the search settles."""
    return plans_in(job.config)


def best_plans(
    job: Job, count: int = 5, wanted: Wanted = "time", advance: Advance = lambda settled: None
) -> Site:
    """The best plans of a job.

    Args:
        job: from `fill`.
        count: how many.
        wanted: the shortest steps, or the fewest joules.
        advance: told how many plans are settled, of `plans_of`.

    Raises:
        InputError: as `search`.
    """
    config = job.config
    found = search(
        config,
        count,
        objective=joules(config, job.design) if wanted == "energy" else STEP_TIME,
        advance=advance,
    )
    return Site(
        job,
        wanted,
        tuple(_planned(config, each) for each in found.best),
        None if found.written is None else _planned(config, found.written),
        found,
    )


def joules(config: ExperimentConfig, drawn: StepEnergy) -> Objective:
    """A chip's joules in a step; `drawn` is a second at the design power."""
    return Objective(drawn.idle + drawn.host + drawn.network, drawn.busy, least_computing(config))


def least_computing(config: ExperimentConfig) -> float:
    """Seconds that a chip computes in a step of any plan, at least: the model's FLOP at what is reached of the peaks."""
    plan, chip = config.plan, build_chip(config.cluster.chip)
    assert config.model.transformer is not None
    assert plan.global_batch is not None
    assert plan.sequence_length is not None
    shape, reached = build_transformer(config.model.transformer), chip.efficiency
    tokens = plan.global_batch * plan.sequence_length
    products = flops(shape, 1.0, tokens, causal=True).model
    whole = flops(shape, plan.sequence_length, plan.global_batch, causal=True).model
    # Documents have less attention: none at all is a bound.
    attention = whole - products if plan.documents is None else 0.0
    formats = [name for name in (plan.formats.math, plan.formats.attention, "bf16") if name in chip.peak]
    rate = max(chip.peak[name] * reached.matmul[name] for name in formats)
    core = max(chip.peak[name] for name in formats) * reached.attention
    return float(products / rate + attention / core) / config.ranks


def _planned(config: ExperimentConfig, one: Evaluated) -> Planned:
    assert config.model.transformer is not None
    shape = build_transformer(config.model.transformer)
    return Planned(one, plan_energy(config, one.plan, shape, one.step, one.computing))
