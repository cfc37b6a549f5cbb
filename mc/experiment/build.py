"""From a configuration to the step that it describes."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from mc.collectives import Phase, phases_of, stages
from mc.collectives.stages import AUTO, Stage
from mc.config import (
    ComputeConfig,
    ExchangeConfig,
    ExperimentConfig,
    NoiseConfig,
    TierConfig,
    TransientConfig,
)
from mc.delays import AbstractDelay, Constant, Scaled, Shifted, add, build_delay, with_inverse, with_pauses
from mc.delays.checks import is_known
from mc.errors import InputError
from mc.exchange import CountedExcess, ExchangePhase, choose, congestion_of_links
from mc.fabric import (
    Cluster,
    SharedLinks,
    build_cluster,
    build_incast,
    build_link_noise,
    shared_links,
    sharing,
    simultaneous_senders,
)
from mc.step import Compute, Persistent, SharedNoise, Step, needs_every_rank

# Up to here links that forget their state have one law of their excess; more states are counted.
_FEW_STATES = 8


@dataclass(frozen=True)
class Built:
    """What an experiment describes.

    Attributes:
        step: the laws and costs of one step.
        links: the sets of links whose states are counted step by step; `CountedExcess.links` says which.
    """

    step: Step
    links: tuple[SharedLinks, ...]

    @property
    def remembers(self) -> bool:
        """Whether steps of one realisation have something in common."""
        return bool(self.step.compute.persistent) or any(each.chain.remembers for each in self.links)


def build_step(config: ExperimentConfig) -> Step:
    """The step of an experiment: its compute law and the phases of its exchange.

    Raises:
        InputError: the collective cannot run on these ranks by this algorithm.
    """
    return build(config).step


def build(config: ExperimentConfig, chosen: Sequence[Stage] | None = None) -> Built:
    """The step of an experiment, and the links that it has to be given the states of.

    Args:
        config: the experiment.
        chosen: how the exchange is carried out, where that is known already; numbers of `config` may then be
            traced.

    Raises:
        InputError: the collective cannot run on these ranks by this algorithm, or links cannot be so.
    """
    cluster = build_cluster(config.cluster)
    found = _phases(config, cluster, chosen)
    # Phases of one tier use the same links, in the same state during a step.
    tiers = {
        phase.tier_index: shared_links(config.cluster, phase.tier_index, config.ranks) for phase in found
    }
    counted = [index for index, links in tiers.items() if links is not None and _is_counted(links)]
    steps = tuple(_build_phase(config, phase, tiers[phase.tier_index], counted) for phase in found)
    links = tuple(links for links in (tiers[index] for index in counted) if links is not None)
    return Built(Step(build_compute(config), steps), links)


def _computing(config: ExperimentConfig) -> tuple[ComputeConfig, ExchangeConfig]:
    """What ranks compute and exchange.

    Raises:
        InputError: the model is a transformer, whose step is built elsewhere.
    """
    model = config.model
    if model.compute is None or model.exchange is None:
        raise InputError(f"{model.name}: expected a model with `compute` and `exchange`; got a transformer")
    return model.compute, model.exchange


def stages_of(config: ExperimentConfig, cluster: Cluster) -> Sequence[Stage]:
    """How the exchange of an experiment is carried out on its cluster, with what is left open chosen.

    Raises:
        InputError: the collective cannot run on these ranks by this algorithm.
    """
    (_, exchange), plan = _computing(config), config.plan
    if plan.algorithm != AUTO or plan.objective == "floor":
        return stages(
            cluster, exchange.collective, config.ranks, exchange.size, plan.algorithm, protocol=plan.protocol
        )
    return choose(
        cluster,
        exchange.collective,
        config.ranks,
        exchange.size,
        build_link_noise(config.cluster, config.ranks).prepared(),
        jax.random.key(config.run.seed, impl="threefry2x32"),
        objective=plan.objective,
        protocol=plan.protocol,
    )


def _phases(config: ExperimentConfig, cluster: Cluster, chosen: Sequence[Stage] | None) -> Sequence[Phase]:
    found = stages_of(config, cluster) if chosen is None else chosen
    return phases_of(cluster, found, _computing(config)[1].size)


def build_compute(config: ExperimentConfig) -> Compute:
    """The compute law of the ranks of an experiment."""
    noise = config.cluster.noise
    rank = _rank_law(compute_time(config), noise)
    persistent = build_persistent(config)
    units = {
        entry.scope: sharing(config.cluster, entry.scope, config.ranks) for entry in noise.transient or ()
    }
    shared = sorted(
        (_shared(entry, units[entry.scope]) for entry in noise.transient or ()), key=lambda n: n.unit
    )
    inside = tuple(each for each in shared if each.unit < config.ranks)
    job = tuple(each for each in shared if each.unit >= config.ranks)
    every_rank = config.ranks if needs_every_rank(persistent, inside) else None
    rates = config.cluster.classes(_computing(config)[0].format, config.ranks)
    kinds = tuple((count, 1 / rate) for count, rate in rates) if len(rates) > 1 or rates[0][1] != 1 else ()
    return Compute(rank, config.ranks, persistent, inside, job, every_rank, kinds)


def compute_time(config: ExperimentConfig) -> float:
    """Seconds that an undisturbed rank computes: as given, or FLOP over the rate that is reached."""
    compute, _ = _computing(config)
    if compute.time is not None:
        return compute.time
    assert compute.flop is not None
    assert compute.format is not None
    assert compute.efficiency is not None
    return compute.flop / (config.cluster.chip.peak.offered[compute.format] * compute.efficiency)


def _rank_law(time: float, noise: NoiseConfig) -> AbstractDelay:
    law: AbstractDelay = Constant(time) if noise.spread is None else Scaled(build_delay(noise.spread), time)
    if noise.jitter is not None:
        jitter = build_delay(noise.jitter)
        # The sum is tabulated here, once; what follows uses it twice.
        law = (
            Shifted(jitter, time) if noise.spread is None else eqx.filter_jit(with_inverse)(add(law, jitter))
        )
    if noise.pauses is not None and _is_there(noise.pauses.probability):
        law = with_pauses(law, noise.pauses.probability, add(law, build_delay(noise.pauses.delay)))
    return law


def _is_there(probability: float) -> bool:
    """Whether something happens at all; what is traced may."""
    return not is_known(probability) or probability > 0


def build_persistent(config: ExperimentConfig) -> tuple[Persistent, ...]:
    """What is drawn once for a realisation of the cluster: factors that units of chips keep."""
    noise, found = config.cluster.noise, []
    if noise.slow_chips is not None and _is_there(noise.slow_chips.fraction):
        found.append(Persistent("slow chips", 1, noise.slow_chips.fraction, noise.slow_chips.slowdown))
    for index, entry in enumerate(noise.persistent or ()):
        unit, name = sharing(config.cluster, entry.scope, config.ranks), f"persistent {index}"
        if entry.spread is not None:
            found.append(Persistent(name, unit, spread=build_delay(entry.spread)))
        elif entry.fraction is not None and entry.fraction > 0 and entry.slowdown is not None:
            found.append(Persistent(name, unit, entry.fraction, entry.slowdown))
    return tuple(found)


def _shared(entry: TransientConfig, unit: int) -> SharedNoise:
    pauses = entry.pauses if entry.pauses is not None and entry.pauses.probability > 0 else None
    return SharedNoise(
        unit,
        None if entry.spread is None else build_delay(entry.spread),
        None if entry.jitter is None else build_delay(entry.jitter),
        None if pauses is None else pauses.probability,
        None if pauses is None else build_delay(pauses.delay),
    )


def _is_counted(links: SharedLinks) -> bool:
    return links.chain.remembers or links.chain.states > _FEW_STATES


def _build_phase(
    config: ExperimentConfig, phase: Phase, links: SharedLinks | None, counted: list[int]
) -> ExchangePhase:
    tier = config.cluster.tiers[phase.tier_index]
    transfer = phase.bandwidth_time + phase.reduction_time
    jitter = None if tier.jitter is None else build_delay(tier.jitter)
    if links is not None and _is_counted(links):
        place = counted.index(phase.tier_index)
        excess = CountedExcess.of(place, links.states, transfer, group=links.group, jitter=jitter)
    else:
        excess = congestion_of_links(transfer, links, config.ranks, jitter)
    return ExchangePhase(
        f"{phase.tier_name}: {phase.algorithm}",
        phase.latency_time,
        transfer,
        excess,
        incast_time(config, phase, tier),
    )


def incast_time(config: ExperimentConfig, phase: Phase, tier: TierConfig) -> jnp.ndarray | float:
    """Seconds that an all-to-all takes longer because many send to one."""
    if tier.incast is None or _computing(config)[1].collective != "all-to-all":
        return 0.0
    senders = simultaneous_senders(phase.algorithm, config.ranks)
    return (build_incast(tier.incast).factor(senders) - 1) * phase.bandwidth_time
