"""The energy of an experiment's step, and the largest cluster of its kind that a facility feeds.

The step is the one without noise; a chip computes for the mean of the stages. The largest cluster has as many chips as may all
compute at once (`mc.energy.design`), in whole nodes and replicas, each of which is as it is (weak scaling,
`mc.experiment.scale`).
"""

import math
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.energy import Facility, StepEnergy, chips_within, design, step_energy
from mc.errors import InputError
from mc.experiment.plan_traffic import plan_flops, plan_traffic
from mc.experiment.quiet_step import build_quiet
from mc.experiment.scale import at_size
from mc.parallel import Plan, build_plan
from mc.training import computing
from mc.transformer import Transformer


@dataclass(frozen=True)
class Largest:
    """The largest cluster that a facility feeds.

    Attributes:
        design: a chip's second at its design power.
        chips: whole nodes and replicas that the facility feeds, all of them at that.
        energy: of a step on so many; None if it cannot be had.
        problem: why not.
    """

    design: StepEnergy
    chips: int
    energy: StepEnergy | None
    problem: str | None = None


def experiment_energy(config: ExperimentConfig) -> StepEnergy:
    """The energy of a step.

    Raises:
        InputError: the model is no transformer, the plan cannot be, or the cluster lacks a power.
    """
    build_plan(config)
    quiet = build_quiet(config)
    works = computing(quiet.breakdown, quiet.plan.passes, quiet.mean_attention)
    return plan_energy(config, quiet.plan, quiet.shape, float(quiet.breakdown.step), float(works))


def plan_energy(
    config: ExperimentConfig, plan: Plan, shape: Transformer, seconds: float, computing: float
) -> StepEnergy:
    """The energy of a plan's step of so many seconds, in which a chip computes for so many."""
    return step_energy(
        config.cluster,
        plan_traffic(config, plan, shape),
        ranks=plan.ranks,
        seconds=seconds,
        computing=computing,
        flop=plan_flops(plan, shape).hardware / plan.ranks,
        tokens=float(plan.global_batch * plan.sequence_length),
    )


def largest(config: ExperimentConfig, facility: Facility) -> Largest:
    """The largest cluster under a facility's budget, with replicas as they are.

    Args:
        config: the experiment.
        facility: the site.

    Raises:
        EnergyError: the cluster lacks a power.
    """
    drawn = design(config.cluster)
    chips = chips_within(facility, drawn.watts_per_rank, unit(config))
    if not chips:
        return Largest(drawn, 0, None, f"not even {unit(config):,} chips, whole nodes and whole replicas")
    try:
        return Largest(drawn, chips, experiment_energy(_sized(config, chips)))
    except InputError as error:
        return Largest(drawn, chips, None, "; ".join(str(error).splitlines()))


def unit(config: ExperimentConfig) -> int:
    """The fewest chips that are whole nodes, and whole replicas of the plan with whole groups of experts."""
    plan = build_plan(config)
    replica = plan.pp * math.lcm(plan.tp * plan.cp, plan.etp * plan.ep)
    return math.lcm(config.cluster.tiers[0].fan_out, replica)


def _sized(config: ExperimentConfig, chips: int) -> ExperimentConfig:
    """The experiment on so many chips, with buckets of gradients as they are, which would else grow with the replicas."""
    sized, _ = at_size(config, chips, "weak")
    plan = sized.plan.model_copy(update={"bucket": build_plan(config).bucket})
    return sized.model_copy(update={"plan": plan})
