"""From an experiment with a transformer to its step: without noise, and with what disturbs it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig, TransientConfig
from mc.delays import AbstractDelay, Slowest, build_delay, with_inverse
from mc.errors import InputError
from mc.experiment.build import build_persistent
from mc.fabric import Cluster, SharedLinks, build_cluster, shared_links, sharing, span
from mc.parallel import Group, Plan, checked_plan, contents
from mc.pipeline import Kind, Timetable, Transfer, order_of, timetable_of
from mc.random import draw_levels, stream
from mc.training import (
    Breakdown,
    LoadLaw,
    Lockstep,
    Noise,
    RankNoise,
    Routing,
    UnitNoise,
    Work,
    attention_law,
    build_chip,
    build_prices,
    evaluate,
    fit_curve,
    load_law,
    lockstep,
    mean_attention,
    number_of_profiles,
    routing_of,
    table_of,
    tabulate_slowness,
)
from mc.training.evaluate import ROUTED
from mc.training.times import PassTime
from mc.transformer import Transformer, build_transformer

Profiles = list[list[tuple[float, int]]]


@dataclass(frozen=True)
class LinksInStates:
    """A tier whose links have states, and where groups meet them.

    Attributes:
        links: the states.
        units: which links each group's ranks use, [stages, replicas, most].
        index: of the tier.
    """

    links: SharedLinks
    units: NDArray[np.int64]
    index: int


@dataclass(frozen=True)
class TrainingStep:
    """A step as an experiment describes it.

    Attributes:
        plan: who does what.
        shape: of the model.
        lockstep: groups of ranks that work as one.
        timetable: of the pipeline.
        transfer: between stages.
        breakdown: without noise, and without skew.
        skewed: without noise, with the mean load of experts and the mean work of documents.
        work: seconds of operations.
        noise: what disturbs them; its table is for `profiles`, and None where every rank is drawn.
        profiles: combinations of persistent factors that groups have, in all realisations.
        profile: [realisations, stages, replicas], which one each group has.
        factor: [realisations, stages, replicas, ranks], those of all ranks.
        loads: per class of parts, the law of the load of its experts.
        load: [realisations, stages, chunks], what of it persists.
        links: tiers whose links have states.
        gradient_links: of those, the tiers that reductions of gradients cross.
        jitter: of the slowest message of a reduction of gradients, per tier that it crosses and that has jitter.
        every_rank: whether every rank has to be drawn, since no two have the same persistent factor.
    """

    plan: Plan
    shape: Transformer
    lockstep: Lockstep
    timetable: Timetable
    transfer: Transfer | None
    breakdown: Breakdown
    skewed: Breakdown
    work: Work
    noise: Noise
    profiles: Profiles
    profile: NDArray[np.int64]
    factor: NDArray[np.float64]
    loads: tuple[LoadLaw, ...]
    load: NDArray[np.float64]
    links: tuple[LinksInStates, ...]
    gradient_links: tuple[int, ...]
    jitter: tuple[AbstractDelay, ...]
    every_rank: bool

    @cached_property
    def is_random(self) -> bool:
        """Whether one step differs from the next."""
        noise = self.noise
        return bool(
            noise.rank.is_random
            or noise.units
            or noise.load
            or noise.documents is not None
            or self.links
            or self.jitter
        )

    @property
    def remembers(self) -> bool:
        """Whether steps of one realisation have something in common."""
        return (
            len(self.profiles) > 1
            or bool(np.ptp(self.factor) > 0)
            or bool(self.loads)
            or any(each.links.chain.remembers for each in self.links)
        )


def build_training(config: ExperimentConfig, key: PRNGKeyArray, realisations: int) -> TrainingStep:
    """The step of an experiment whose model is a transformer.

    Args:
        config: the experiment.
        key: root key of the run.
        realisations: how many clusters to draw.

    Raises:
        InputError: the plan cannot be, does not fit into memory, or the cluster cannot carry it.
    """
    plan = checked_plan(config)
    assert config.model.transformer is not None
    shape = build_transformer(config.model.transformer)
    chips = config.cluster.chips(config.ranks)
    if len(chips) > 1 or chips[0][1] != config.cluster.chip or chips[0][2] != 1.0:
        raise InputError(
            f"{config.cluster.name}: expected chips that are all alike for a transformer; got "
            + ", ".join(f"{count} of {chip.name} times {slowdown:g}" for count, chip, slowdown in chips)
        )
    cluster, chip = build_cluster(config.cluster), build_chip(config.cluster.chip)
    prices = build_prices(cluster, plan.protocol)
    breakdown = evaluate(plan, shape, chip, prices)
    together = lockstep(plan)
    loads, classes = _loads(shape, plan)
    documents = plan.documents
    law = mean = None
    if documents is not None:
        told = (documents.median, documents.sigma, plan.sequence_length)
        law, mean = attention_law(*told, plan.micro_batch), mean_attention(*told)
    skewed = breakdown
    if loads or mean is not None:
        routed = max((each.mean for each in loads), default=1.0)
        skewed = evaluate(plan, shape, chip, prices, routed=routed, attention=mean or 1.0)
    factor = _factors(config, together, key, realisations)
    profile, profiles = number_of_profiles(factor)
    links = _links(config, plan, together)
    work, seconds = _work(breakdown, plan, cluster, links, classes)
    every_rank = any(each.spread is not None for each in build_persistent(config))
    rank = _rank_noise(config, plan)
    differs = rank.is_random or len(profiles) > 1 or profiles[0][0][0] != 1.0
    is_tabled = differs and not every_rank and config.run.method != "direct"
    table = tabulate_slowness(rank, seconds.tolist(), profiles) if is_tabled else None
    noise = Noise(
        rank=rank.prepared(),
        table=table,
        curve=None if table is None or rank.adds_seconds else fit_curve(table),
        seconds=jnp.asarray(np.maximum(seconds, 1e-12)),
        units=tuple(_unit_noise(config, cluster, together, each) for each in _transients(config)),
        load=tuple(with_inverse(each.transient) for each in loads),
        documents=law,
    )
    forward, backward = (jnp.asarray(float(price.seconds)) for price in breakdown.times.transfer)
    transfer = Transfer(forward, backward, not plan.overlap.pipeline) if plan.pp > 1 else None
    gradient_tiers = {
        _tier(cluster, group) for group in (plan.groups.shard, plan.groups.replica, plan.groups.gradient)
    }
    return TrainingStep(
        plan=plan,
        shape=shape,
        lockstep=together,
        timetable=timetable_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks),
        transfer=transfer,
        breakdown=breakdown,
        skewed=skewed,
        work=work,
        noise=noise,
        profiles=profiles,
        profile=profile,
        factor=factor,
        loads=loads,
        load=_persistent_loads(loads, classes, key, realisations),
        links=links,
        gradient_links=tuple(place for place, each in enumerate(links) if each.index in gradient_tiers),
        jitter=_jitters(config, cluster, plan.groups.gradient),
        every_rank=every_rank,
    )


def _tier(cluster: Cluster, group: Group) -> int:
    return span(cluster, group.axes)[-1].index if group.axes else -1


def _jitters(config: ExperimentConfig, cluster: Cluster, group: Group) -> tuple[AbstractDelay, ...]:
    crossed = span(cluster, group.axes) if group.axes else ()
    found = (config.cluster.tiers[each.index].jitter for each in crossed)
    return tuple(
        with_inverse(Slowest(build_delay(each), float(config.ranks))) for each in found if each is not None
    )


def _rank_noise(config: ExperimentConfig, plan: Plan) -> RankNoise:
    noise = config.cluster.noise
    pauses = noise.pauses if noise.pauses is not None and noise.pauses.probability > 0 else None
    order = order_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    # A step's pauses are spread over the operations of a rank.
    operations = int((order.kind != Kind.IDLE).sum(axis=1).max())
    probability = (
        0.0 if pauses is None else -math.expm1(math.log1p(-min(pauses.probability, 1 - 1e-12)) / operations)
    )
    return RankNoise(
        spread=None if noise.spread is None else build_delay(noise.spread),
        jitter=None if noise.jitter is None else build_delay(noise.jitter),
        pause=None if pauses is None else build_delay(pauses.delay),
        pause_probability=jnp.asarray(probability),
    )


def _transients(config: ExperimentConfig) -> Sequence[TransientConfig]:
    return config.cluster.noise.transient or ()


def _units(config: ExperimentConfig, scope: str) -> NDArray[np.int64]:
    """Which unit of a scope each rank of the job is in."""
    return np.arange(config.ranks) // sharing(config.cluster, scope, config.ranks)


def _unit_noise(
    config: ExperimentConfig, cluster: Cluster, together: Lockstep, entry: TransientConfig
) -> UnitNoise:
    del cluster
    units = _units(config, entry.scope)
    pauses = entry.pauses if entry.pauses is not None and entry.pauses.probability > 0 else None
    return UnitNoise(
        name=f"transient {entry.scope}",
        units=jnp.asarray(together.units(units)),
        count=int(units[-1]) + 1,
        spread=None if entry.spread is None else with_inverse(build_delay(entry.spread)),
        jitter=None if entry.jitter is None else with_inverse(build_delay(entry.jitter)),
        pause=None if pauses is None else with_inverse(build_delay(pauses.delay)),
        pause_probability=0.0 if pauses is None else pauses.probability,
    )


def _factors(
    config: ExperimentConfig, together: Lockstep, key: PRNGKeyArray, realisations: int
) -> NDArray[np.float64]:
    """Persistent factors of all ranks, [realisations, stages, replicas, ranks]."""
    factor = np.ones((realisations, config.ranks))
    for entry in build_persistent(config):
        unit = np.arange(config.ranks) // entry.unit
        count = int(unit[-1]) + 1
        levels = draw_levels(stream(key, entry.name), (realisations, count))
        if entry.spread is not None:
            drawn = np.asarray(with_inverse(entry.spread).quantile(levels), np.float64)
        else:
            assert entry.fraction is not None
            is_slow = np.asarray(levels) <= math.log(max(float(entry.fraction), 1e-300))
            drawn = np.where(is_slow, float(entry.slowdown), 1.0)
        factor *= drawn[:, unit]
    return factor[:, together.members]


def _loads(shape: Transformer, plan: Plan) -> tuple[tuple[LoadLaw, ...], NDArray[np.int64]]:
    """The laws of the load of parts with as many layers with experts, and which law is each part's."""
    moe = np.array([[content.moe for content in stage] for stage in contents(shape, plan)])
    if shape.experts is None or (plan.ep == 1 and plan.routing.overflow != "drop"):
        return (), np.zeros_like(moe)
    routing: Routing = routing_of(shape, plan)
    kinds, classes = np.unique(moe, return_inverse=True)
    laws = tuple(load_law(routing, max(int(layers), 1)) for layers in kinds)
    return laws, classes.reshape(moe.shape)


def _persistent_loads(
    loads: tuple[LoadLaw, ...], classes: NDArray[np.int64], key: PRNGKeyArray, realisations: int
) -> NDArray[np.float64]:
    if not loads:
        return np.ones((realisations, *classes.shape))
    levels = draw_levels(stream(key, "popularity"), (realisations, *classes.shape))
    drawn = [np.asarray(with_inverse(each.persistent).quantile(levels), np.float64) for each in loads]
    return np.choose(classes[None], drawn)


def _links(config: ExperimentConfig, plan: Plan, together: Lockstep) -> tuple[LinksInStates, ...]:
    found = []
    for index in range(len(config.cluster.tiers)):
        links = shared_links(config.cluster, index, plan.ranks)
        if links is not None:
            units = together.units(np.arange(plan.ranks) // links.group)
            found.append(LinksInStates(links, units, index))
    return tuple(found)


def _work(
    breakdown: Breakdown,
    plan: Plan,
    cluster: Cluster,
    links: Sequence[LinksInStates],
    classes: NDArray[np.int64],
) -> tuple[Work, NDArray[np.float64]]:
    """Seconds of operations, and how long those of each class compute."""
    times = breakdown.times

    def table(value) -> NDArray[np.float64]:
        return np.asarray(table_of(times, value), np.float64)

    compute = table(lambda one: one.compute)
    seconds, group = np.unique(np.round(compute, 9), return_inverse=True)
    reached = {
        name: _tier(cluster, group)
        for name, group in zip(
            ("tp", "cp", "ep", "etp"),
            (plan.groups.tp, plan.groups.cp, plan.groups.ep, plan.groups.etp),
            strict=True,
        )
    }

    def bytes_on(tier: int, *, routed: bool):
        def value(one: PassTime) -> float:
            waiting = sum(one.waiting.values())
            moving = 1.0 - min(one.latency / waiting, 1.0) if waiting else 0.0
            mine = [
                seconds
                for name, seconds in one.waiting.items()
                if reached.get(name) == tier and (name in ROUTED) == routed
            ]
            return moving * sum(mine)

        return value

    def crossings(tier: int):
        return lambda one: one.exchanges if any(reached.get(name) == tier for name in one.waiting) else 0.0

    shape = compute.shape
    crossing = [[table(bytes_on(each.index, routed=routed)) for routed in (False, True)] for each in links]
    work = Work(
        plain=jnp.asarray(table(lambda one: one.compute - one.routed)),
        routed=jnp.asarray(table(lambda one: one.routed)),
        attention=jnp.asarray(table(lambda one: one.attention)),
        waiting=jnp.asarray(
            table(lambda one: sum(time for name, time in one.waiting.items() if name not in ROUTED))
        ),
        routing=jnp.asarray(
            table(lambda one: sum(time for name, time in one.waiting.items() if name in ROUTED))
        ),
        host=jnp.asarray(table(lambda one: one.host)),
        crossing=jnp.asarray(np.array(crossing).reshape(len(links), 2, *shape)),
        exchanges=jnp.asarray(
            np.array([table(crossings(each.index)) for each in links]).reshape(len(links), *shape)
        ),
        group=jnp.asarray(group.reshape(shape), jnp.int32),
        layers=jnp.asarray(classes, jnp.int32),
    )
    return work, seconds
