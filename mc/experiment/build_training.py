"""From an experiment with a transformer to its step: without noise, and with what disturbs it."""

from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.delays import with_inverse
from mc.experiment.build import build_persistent
from mc.experiment.training_links import DisturbedTier, StepMessage, disturbed_tiers, step_messages
from mc.experiment.training_noise import (
    load_laws,
    persistent_factors,
    persistent_loads,
    rank_noise,
    unit_noises,
)
from mc.fabric import build_cluster
from mc.parallel import Plan, checked_plan, messages
from mc.pipeline import Timetable, by_kind, timetable_of
from mc.training import (
    AbstractPrices,
    Breakdown,
    Generations,
    LoadLaw,
    Lockstep,
    MixedTimes,
    Noise,
    Sent,
    Times,
    Work,
    attention_law,
    build_prices,
    crossings,
    evaluate_mixes,
    fit_curve,
    generations,
    lockstep,
    mean_attention,
    number_of_profiles,
    seldom,
    table_of,
    tabulate_slowness,
    times_of_mixes,
)
from mc.training.crossings import Crossing
from mc.training.slowness import Alike
from mc.training.times import PASSES, ROUTED, PassTime
from mc.transformer import Transformer, build_transformer

Floats = NDArray[np.float64]


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
    classes = _classes(quiet, None if like is None else np.asarray(like.work.group))
    work = _work(quiet, classes, tiers, layers, loads)
    sent = _sent(quiet, tiers)
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
            tier.lateness(together.ranks, _counts(work, sent, place)) for place, tier in enumerate(tiers)
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


@dataclass(frozen=True)
class _Classes:
    """Operations that noise treats alike.

    Attributes:
        seconds: that they compute.
        stretches: in which.
        ratios: how long each kind of chip does, over the slowest in the group, [classes, kinds of chips].
        group: class of each operation, [mixes, kinds, stages, chunks].
    """

    seconds: Floats
    stretches: NDArray[np.int64]
    ratios: Floats
    group: NDArray[np.int64]


def _table(times: Times, value) -> Floats:
    return np.asarray(table_of(times, value), np.float64)


def _classes(quiet: QuietStep, known: NDArray[np.int64] | None) -> _Classes:
    less = quiet.mean_attention - 1.0

    def computing(times: Times) -> Floats:
        return _table(times, lambda one: one.compute + less * one.attention)

    whole = np.stack([computing(each) for each in quiet.times.by_mix])
    parts = np.stack([computing(each) for each in quiet.times.by_kind], axis=-1)
    waits = np.stack([_table(each, lambda one: one.exchanges) for each in quiet.times.by_mix])
    stretches = np.maximum(np.round(waits), 1.0)
    ratios = np.ones((*whole.shape, parts.shape[-1]))
    for mix, kinds in enumerate(quiet.chips.mixes):
        chosen = list(kinds)
        own = np.maximum(whole[mix], 1e-12)[..., None]
        ratios[mix][..., chosen] = np.where(own > 1e-12, parts[..., chosen] / own, 1.0)
    if known is None:
        told = np.concatenate(
            [np.round(whole, 9)[..., None], stretches[..., None], np.round(ratios, 6)], axis=-1
        )
        _, first, group = np.unique(
            told.reshape(-1, told.shape[-1]), axis=0, return_index=True, return_inverse=True
        )
    else:
        _, first, group = np.unique(known, return_index=True, return_inverse=True)
    return _Classes(
        seconds=whole.ravel()[first],
        stretches=stretches.ravel()[first].astype(np.int64),
        ratios=ratios.reshape(-1, ratios.shape[-1])[first],
        group=group.reshape(whole.shape),
    )


def _work(
    quiet: QuietStep,
    classes: _Classes,
    tiers: tuple[DisturbedTier, ...],
    layers: NDArray[np.int64],
    loads: tuple[LoadLaw, ...],
) -> Work:
    """Seconds of operations."""
    mixes, less = quiet.times.by_mix, quiet.mean_attention - 1.0

    def table(value) -> Floats:
        return np.stack([_table(each, value) for each in mixes])

    # Tokens to experts take so many seconds whatever the busiest rank gets, and so many more with its load; by the mean
    # loads, which are the same for all classes.
    ranks, nodes = (loads[0].mean, loads[0].nodes) if loads else (1.0, 1.0)

    def growing(one: PassTime) -> float:
        return one.growing(ranks, nodes)

    def steady(one: PassTime) -> float:
        return one.tokens(ranks, nodes) - ranks * growing(one)

    def waiting(one: PassTime) -> float:
        return sum(one.waiting.values()) - one.tokens() + steady(one)

    # What crosses tiers is told by part and pass, so tables are made of the passes with where they are.
    across = crossings(quiet.plan, quiet.shape, quiet.prices)

    def of_tier(value) -> Floats:
        def one(times: Times) -> Floats:
            columns = [
                [
                    [value(getattr(part, name), found[name]) for part, found in zip(*stage, strict=True)]
                    for stage in zip(times.parts, across, strict=True)
                ]
                for name in PASSES
            ]
            return np.asarray(by_kind(len(times.parts), len(times.parts[0]), *columns), np.float64)

        return np.stack([one(each) for each in mixes])

    def bytes_on(tier: int, *, grows: bool) -> Floats:
        def seconds(one: PassTime, found: Crossing) -> float:
            tokens = found.bytes_on(one, tier, lambda name: name == ROUTED) / max(one.tokens(), 1e-300)
            if grows:
                return tokens * growing(one)
            return found.bytes_on(one, tier, lambda name: name != ROUTED) + tokens * steady(one)

        return of_tier(seconds)

    shape = classes.group.shape
    crossing = [[bytes_on(each.index, grows=grows) for grows in (False, True)] for each in tiers]
    waited = [of_tier(lambda _, found, tier=each.index: found.waited.get(tier, 0.0)) for each in tiers]
    mix = quiet.chips.mix
    return Work(
        plain=jnp.asarray(table(lambda one: one.compute - one.routed + less * one.attention)),
        routed=jnp.asarray(table(lambda one: one.routed)),
        attention=jnp.asarray(table(lambda one: one.attention)),
        waiting=jnp.asarray(table(waiting)),
        routing=jnp.asarray(table(growing)),
        host=jnp.asarray(table(lambda one: one.host)),
        crossing=jnp.asarray(np.array(crossing).reshape(len(tiers), 2, *shape)),
        messages=jnp.asarray(np.round(np.array(waited).reshape(len(tiers), *shape)), jnp.int32),
        group=jnp.asarray(classes.group, jnp.int32),
        layers=jnp.asarray(layers, jnp.int32),
        mix=jnp.asarray(mix, jnp.int32) if len(mixes) > 1 else None,
    )


def _sent(quiet: QuietStep, tiers: tuple[DisturbedTier, ...]) -> Sent | None:
    """Messages between stages."""
    plan = quiet.plan
    if plan.pp == 1:
        return None
    place_of = {tier.index: place for place, tier in enumerate(tiers)}
    crossing, counts = np.zeros((len(tiers), 2)), [0] * len(tiers)
    for message in messages(quiet.shape, plan):
        place = place_of.get(quiet.prices.tier(message.group))
        if message.per != "chunk" or place is None:
            continue
        way = ("forward", "backward").index(message.where)
        crossing[place, way] += float(
            quiet.prices.price(message.collective, message.group, message.bytes).bandwidth
        )
        # As many each way.
        counts[place] += way == 0
    seconds = [float(price.seconds) for price in quiet.breakdown.times.transfer]
    return Sent(jnp.asarray(seconds), jnp.asarray(crossing), tuple(counts), not plan.overlap.pipeline)


def _counts(work: Work, sent: Sent | None, place: int) -> list[int]:
    """Numbers of messages that follow one another on a disturbed tier."""
    counts = np.unique(np.asarray(work.messages[place])).tolist()
    return counts if sent is None else [*counts, sent.messages[place]]
