"""What a plan sends over which tier of its cluster; built apart, since it needs the fabric and with it JAX."""

from mc.config import ExperimentConfig
from mc.errors import InputError
from mc.fabric import build_cluster, crossed
from mc.network_roofline import Load, Roof, plan_points
from mc.parallel import Plan, Traffic, build_plan, recomputed_share, traffic
from mc.transformer import Flops, Transformer, build_transformer, flops


def plan_traffic(experiment: ExperimentConfig, plan: Plan, shape: Transformer) -> tuple[Traffic, ...]:
    """What ranks of a plan send in a step; raises InputError where it does not lie on the cluster."""
    cluster = build_cluster(experiment.cluster)
    return traffic(shape, plan, lambda group: crossed(cluster, group))


def plan_flops(plan: Plan, shape: Transformer) -> Flops:
    """FLOP of a step of all ranks, by the model and as executed."""
    count = plan.sequence_length, plan.global_batch, plan.config.recompute
    return flops(shape, *count, recomputed=recomputed_share(shape, plan))


def plan_load(experiment: ExperimentConfig) -> Load:
    """An experiment's plan on the roofs of its cluster.

    Raises:
        InputError: the model is no transformer, the chip has not the plan's format, or the plan does not lie on the
            cluster.
    """
    plan = build_plan(experiment)
    assert experiment.model.transformer is not None
    shape = build_transformer(experiment.model.transformer)
    cluster, number_format = experiment.cluster, plan.formats.math
    peak = cluster.chip.peak.offered.get(number_format)
    if peak is None:
        raise InputError(
            f"plan.formats.math: expected a format that the chip has ({', '.join(cluster.chip.peak.offered)}); "
            f"got {number_format}"
        )
    roofs = [Roof(tier.name, tier.bandwidth_per_rank, peak) for tier in cluster.tiers]
    executed = plan_flops(plan, shape).hardware
    return plan_points(plan_traffic(experiment, plan, shape), roofs, executed / plan.ranks)
