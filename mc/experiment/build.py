"""From a configuration to the step that it describes."""

import equinox as eqx
import jax.numpy as jnp

from mc.collectives import Phase, phases
from mc.config import ComputeConfig, ExperimentConfig, NoiseConfig, TierConfig
from mc.config.cluster import ALL_RANKS, EVERY_RANK_ALONE
from mc.delays import AbstractDelay, Constant, Scaled, Shifted, add, build_delay, with_inverse, with_pauses
from mc.fabric import build_cluster
from mc.step import Compute, ExchangePhase, Step, congestion_law


def build_step(config: ExperimentConfig) -> Step:
    """The step of an experiment: its compute law and the phases of its exchange.

    Raises:
        InputError: the collective cannot run on these ranks by this algorithm.
    """
    cluster = build_cluster(config.cluster)
    exchange = config.model.exchange
    found = phases(cluster, exchange.collective, config.ranks, exchange.size, config.plan.algorithm)
    return Step(build_compute(config), tuple(_build_phase(config, phase) for phase in found))


def build_compute(config: ExperimentConfig) -> Compute:
    """The compute law of the ranks of an experiment."""
    noise = config.cluster.noise
    rank = _rank_law(compute_time(config), noise)
    if noise.slow_chips is None or noise.slow_chips.fraction == 0:
        return Compute(rank, config.ranks)
    return Compute(rank, config.ranks, noise.slow_chips.fraction, noise.slow_chips.slowdown)


def compute_time(config: ExperimentConfig) -> float:
    """Seconds that an undisturbed rank computes: as given, or FLOP over the rate that is reached."""
    compute: ComputeConfig = config.model.compute
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
    if noise.pauses is not None and noise.pauses.probability > 0:
        law = with_pauses(law, noise.pauses.probability, add(law, build_delay(noise.pauses.delay)))
    return law


def _build_phase(config: ExperimentConfig, phase: Phase) -> ExchangePhase:
    tier = config.cluster.tiers[phase.tier_index]
    transfer = phase.bandwidth_time + phase.reduction_time
    group = min(_ranks_that_share(config, tier), config.ranks)
    congestion = tier.congestion
    states = None if congestion is None else congestion.states
    excess = congestion_law(
        transfer,
        group=group,
        groups=-(-config.ranks // group),
        probabilities=None if states is None else jnp.asarray([state.probability for state in states]),
        slowdowns=None if states is None else jnp.asarray([state.slowdown for state in states]),
        delays=None if states is None else jnp.asarray([state.delay for state in states]),
        jitter=None if tier.jitter is None else build_delay(tier.jitter),
    )
    return ExchangePhase(f"{phase.tier_name}: {phase.algorithm}", phase.latency_time, transfer, excess)


def _ranks_that_share(config: ExperimentConfig, tier: TierConfig) -> int:
    shared_by = EVERY_RANK_ALONE if tier.congestion is None else tier.congestion.shared_by
    if shared_by == EVERY_RANK_ALONE:
        return 1
    if shared_by == ALL_RANKS:
        return config.ranks
    ranks = 1
    for inner in config.cluster.tiers:
        ranks *= inner.fan_out
        if inner.name == shared_by:
            break
    return ranks
