"""The energy of an experiment's step, and the largest cluster of its kind that a facility feeds.

The step is the one without noise. A chip computes for as long as that of the stage that works longest, so stages with less to do are
taken to draw too much. The largest cluster has more replicas, each as it is (weak scaling, `mc.experiment.scale`): its power for
each chip depends on its step, and with that on its size, so sizes are tried until one fits and is the one that its own power allows.
"""

import math
from dataclasses import dataclass

from mc.config import ExperimentConfig
from mc.energy import EnergyError, Facility, StepEnergy, chips_within, step_energy
from mc.errors import InputError
from mc.experiment.build_training import build_quiet
from mc.experiment.plan_traffic import plan_flops, plan_traffic
from mc.experiment.scale import at_size
from mc.parallel import build_plan

_TRIES = 8
# Parts of a step in which a chip computes.
_COMPUTING = ("ideal_compute", "below_peak", "optimizer")


@dataclass(frozen=True)
class Largest:
    """The largest cluster that a facility feeds.

    Attributes:
        chips: that it feeds if each draws what it draws in the experiment as written.
        energy: of its step; None if it cannot be had.
        problem: why not.
    """

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
    plan, shape = quiet.plan, quiet.shape
    parts = quiet.breakdown.parts
    return step_energy(
        config.cluster,
        plan_traffic(config, plan, shape),
        ranks=plan.ranks,
        seconds=float(quiet.breakdown.step),
        computing=float(sum(parts[name] for name in _COMPUTING)),
        flop=plan_flops(plan, shape).hardware / plan.ranks,
        tokens=float(plan.global_batch * plan.sequence_length),
    )


def largest(config: ExperimentConfig, facility: Facility, energy: StepEnergy) -> Largest:
    """The largest cluster under a facility's budget with replicas as they are.

    Args:
        config: the experiment.
        facility: the site.
        energy: of the experiment's step.
    """
    replica = _replica(config)
    fed = chips = chips_within(facility, energy.watts_per_rank, replica)
    tried: dict[int, StepEnergy] = {}
    for _ in range(_TRIES):
        if chips < replica:
            return Largest(fed, None, f"not even one replica of {replica:,} chips")
        try:
            found = tried[chips] = experiment_energy(_sized(config, chips))
        except EnergyError:
            raise
        except InputError as error:
            return Largest(fed, None, f"{chips:,} chips: {'; '.join(str(error).splitlines())}")
        chips = chips_within(facility, found.watts_per_rank, replica)
        if chips in tried:
            break
    # Where two sizes allow each other, the larger that fits.
    fitting = [each for each in tried.values() if facility.share(each) <= 1]
    if not fitting:
        return Largest(fed, None, f"no size of some {chips:,} chips was found to fit")
    return Largest(fed, max(fitting, key=lambda each: each.ranks))


def _replica(config: ExperimentConfig) -> int:
    """Chips of the fewest replicas that hold whole groups of experts."""
    plan = build_plan(config)
    return plan.pp * math.lcm(plan.tp * plan.cp, plan.etp * plan.ep)


def _sized(config: ExperimentConfig, chips: int) -> ExperimentConfig:
    """The experiment on so many chips, with buckets of gradients as they are, which would else grow with the replicas."""
    sized, _ = at_size(config, chips, "weak")
    plan = sized.plan.model_copy(update={"bucket": build_plan(config).bucket})
    return sized.model_copy(update={"plan": plan})
