"""The step of a transformer without noise: an experiment's plan on its chips and links."""

from dataclasses import dataclass, replace

from mc.config import ExperimentConfig
from mc.fabric import build_cluster
from mc.parallel import Plan, checked_plan
from mc.training import (
    AbstractPrices,
    Breakdown,
    Generations,
    Lockstep,
    MixedTimes,
    build_prices,
    evaluate_mixes,
    generations,
    lockstep,
    mean_attention,
    seldom,
    times_of_mixes,
)
from mc.transformer import Transformer, build_transformer


@dataclass(frozen=True)
class QuietStep:
    """A step without noise.

    Attributes:
        plan: who does what.
        shape: of the model.
        lockstep: groups of ranks that work as one.
        chips: that they have.
        times: of passes, by kind of chip and by mix.
        prices: of messages.
        mean_attention: work of attention in documents, over that of full length.
        breakdown: of the step, with experts at their mean load and documents at their mean work; where replicas exchange seldom
            or late, of one of the steps from an exchange to the next.
    """

    plan: Plan
    shape: Transformer
    lockstep: Lockstep
    chips: Generations
    times: MixedTimes
    prices: AbstractPrices
    mean_attention: float
    breakdown: Breakdown


def build_quiet(config: ExperimentConfig) -> QuietStep:
    """The step of an experiment whose model is a transformer, without noise.

    Raises:
        InputError: the plan cannot be, does not fit into memory, or the cluster cannot carry it.
    """
    plan = checked_plan(config)
    assert config.model.transformer is not None
    shape = build_transformer(config.model.transformer)
    # Backups work like all others; what replicas exchange is that of those who are needed.
    backups = config.mitigations.backups
    together = lockstep(replace(plan, dp=plan.dp + backups, ranks=plan.ranks + config.backup_ranks))
    chips = generations(config.cluster, together)
    prices = build_prices(build_cluster(config.cluster), plan.protocol)
    times = times_of_mixes(chips, plan, shape, prices)
    documents, mean = plan.documents, 1.0
    if documents is not None:
        mean = mean_attention(documents.median, documents.sigma, plan.sequence_length)
    breakdown = evaluate_mixes(chips, times, plan, shape, prices, attention=mean)
    told = config.mitigations
    breakdown = seldom(breakdown, told.steps, told.staleness)
    return QuietStep(plan, shape, together, chips, times, prices, mean, breakdown)
