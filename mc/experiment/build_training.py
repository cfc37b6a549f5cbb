"""From an experiment with a transformer to its step, with what disturbs it."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.delays import with_inverse
from mc.experiment.build import build_persistent
from mc.experiment.quiet_step import QuietStep, build_quiet
from mc.experiment.training_links import DisturbedTier, StepMessage, disturbed_tiers, step_messages
from mc.experiment.training_noise import (
    load_laws,
    persistent_factors,
    persistent_loads,
    rank_noise,
    unit_noises,
)
from mc.experiment.training_operations import classes_of, message_counts, sent_of, work_of
from mc.parallel import messages
from mc.pipeline import Timetable, timetable_of
from mc.training import (
    LoadLaw,
    Noise,
    Sent,
    Work,
    attention_law,
    fit_curve,
    number_of_profiles,
    tabulate_slowness,
)
from mc.training.slowness import Alike

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingStep:
    """A step as an experiment describes it.

    Attributes:
        quiet: without noise.
        timetable: of the pipeline.
        sent: between stages; None where there is one.
        work: seconds of operations.
        noise: what disturbs them; its table is for `profiles`, and None where every rank is drawn.
        profiles: combinations of persistent factors that groups have, in all realisations.
        profile: [realisations, stages, replicas], which one each group has.
        factor: [realisations, stages, replicas, ranks], those of all ranks.
        loads: per class of parts, the law of the load of its experts.
        load: [realisations, stages, chunks], what of it persists.
        tiers: whose messages are disturbed.
        step_messages: of the step, that cross them.
        every_rank: whether every rank has to be drawn, since no two have the same persistent factor.
        dropped: how many replicas nobody waits for.
        steps: from one exchange to the next.
        staleness: by how many exchanges may be late.
    """

    quiet: QuietStep
    timetable: Timetable
    sent: Sent | None
    work: Work
    noise: Noise
    profiles: list[list[Alike]]
    profile: NDArray[np.int64]
    factor: Floats
    loads: tuple[LoadLaw, ...]
    load: Floats
    tiers: tuple[DisturbedTier, ...]
    step_messages: tuple[StepMessage, ...]
    every_rank: bool
    dropped: int = 0
    steps: int = 1
    staleness: int = 0

    @cached_property
    def is_random(self) -> bool:
        """Whether one step differs from the next."""
        noise = self.noise
        return bool(
            noise.rank.is_random or noise.units or noise.load or noise.documents is not None or self.tiers
        )

    @property
    def remembers(self) -> bool:
        """Whether steps of one realisation have something in common."""
        return self.stays or bool(self.staleness)

    @property
    def stays(self) -> bool:
        """Whether something of the cluster, or of the data, stays during a realisation."""
        return (
            len(self.profiles) > 1
            or bool(np.ptp(self.factor) > 0)
            or bool(self.loads)
            or any(each.links is not None and each.links.chain.remembers for each in self.tiers)
        )


def build_training(
    config: ExperimentConfig, key: PRNGKeyArray, realisations: int, like: TrainingStep | None = None
) -> TrainingStep:
    """The step of an experiment whose model is a transformer.

    Args:
        config: the experiment.
        key: root key of the run.
        realisations: how many clusters to draw.
        like: a step that differs in figures, whose operations that noise treats alike are kept together; by their times
            if left out.

    Raises:
        InputError: the plan cannot be, does not fit into memory, or the cluster cannot carry it.
    """
    quiet, told = build_quiet(config), config.mitigations
    plan, shape, together, chips, prices = quiet.plan, quiet.shape, quiet.lockstep, quiet.chips, quiet.prices
    loads, layers = load_laws(shape, plan)
    documents = plan.documents
    factor = persistent_factors(config, together, key, realisations)
    is_mixed = len(chips.chips) > 1
    profile, profiles = number_of_profiles(factor, chips.kind if is_mixed else None)
    crossed = {prices.tier(each.group) for each in messages(shape, plan)}
    tiers = disturbed_tiers(config, plan, together, crossed)
    classes = classes_of(quiet, None if like is None else np.asarray(like.work.group))
    work = work_of(quiet, classes, tiers, layers, loads)
    sent = sent_of(quiet, tiers)
    every_rank = any(each.spread is not None for each in build_persistent(config))
    rank = rank_noise(config, plan)
    differs = rank.is_random or len(profiles) > 1 or profiles[0][0][0] != 1.0 or is_mixed
    table = None
    if differs and not every_rank and config.run.method != "direct":
        table = tabulate_slowness(
            rank,
            classes.seconds.tolist(),
            profiles,
            stretches=classes.stretches.tolist(),
            ratios=classes.ratios,
        )
    noise = Noise(
        rank=rank.prepared(),
        table=table,
        curve=None if table is None or rank.adds_seconds else fit_curve(table),
        seconds=jnp.asarray(np.maximum(classes.seconds, 1e-12)),
        stretches=jnp.asarray(classes.stretches, jnp.int32),
        ratio=jnp.asarray(classes.ratios) if is_mixed else None,
        chip=jnp.asarray(chips.kind, jnp.int32) if is_mixed else None,
        units=unit_noises(config, together),
        load=tuple(with_inverse(each.transient) for each in loads),
        documents=None
        if documents is None
        else attention_law(documents.median, documents.sigma, plan.sequence_length, plan.micro_batch),
        mean_attention=quiet.mean_attention,
        late=tuple(
            tier.lateness(together.ranks, message_counts(work, sent, place))
            for place, tier in enumerate(tiers)
        ),
    )
    return TrainingStep(
        quiet=quiet,
        timetable=timetable_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks),
        sent=sent,
        work=work,
        noise=noise,
        profiles=profiles,
        profile=profile,
        factor=factor,
        loads=loads,
        load=persistent_loads(loads, layers, key, realisations),
        tiers=tiers,
        step_messages=step_messages(tiers, quiet.breakdown.times, plan, prices.tier),
        every_rank=every_rank,
        dropped=config.dropped,
        steps=told.steps,
        staleness=told.staleness,
    )
