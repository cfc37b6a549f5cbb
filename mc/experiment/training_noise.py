"""What disturbs the operations of a training step, from the words of an experiment."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig, TransientConfig
from mc.config.cluster import EVERY_RANK_ALONE
from mc.config.noise import NoiseConfig
from mc.delays import build_delay, with_inverse
from mc.experiment.build import build_persistent
from mc.fabric import units_of
from mc.parallel import Plan, contents
from mc.pipeline import Kind, order_of
from mc.random import draw_levels, stream
from mc.training import KernelNoise, LoadLaw, Lockstep, RankNoise, Routing, UnitNoise, load_law, routing_of
from mc.transformer import Transformer


def rank_noise(config: ExperimentConfig, plan: Plan) -> RankNoise:
    """What is drawn for each rank and operation of a step."""
    order = order_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    return noise_of_ranks(config.cluster.noise, int((order.kind != Kind.IDLE).sum(axis=1).max()))


def noise_of_ranks(noise: NoiseConfig, operations: int = 1) -> RankNoise:
    """What is drawn for each rank and operation.

    Args:
        noise: as it is written.
        operations: of a rank, over which its pauses are spread.
    """
    pauses = noise.pauses if noise.pauses is not None and noise.pauses.probability > 0 else None
    probability = 0.0 if pauses is None else pauses.probability
    if pauses is not None and operations > 1:
        probability = -math.expm1(math.log1p(-min(probability, 1 - 1e-12)) / operations)
    kernels = None
    if noise.kernels is not None:
        told = noise.kernels.spread, noise.kernels.jitter
        kernels = KernelNoise(*(None if law is None else build_delay(law) for law in told))
    return RankNoise(
        spread=None if noise.spread is None else build_delay(noise.spread),
        jitter=None if noise.jitter is None else build_delay(noise.jitter),
        pause=None if pauses is None else build_delay(pauses.delay),
        pause_probability=jnp.asarray(probability),
        kernels=kernels,
    )


def unit_noises(config: ExperimentConfig, together: Lockstep) -> tuple[UnitNoise, ...]:
    """What is drawn for each unit and step, each entry with a stream of its own."""
    entries = config.cluster.noise.transient or ()
    return tuple(_unit_noise(config, together, index, entry) for index, entry in enumerate(entries))


def _unit_noise(
    config: ExperimentConfig, together: Lockstep, index: int, entry: TransientConfig
) -> UnitNoise:
    units = units_of(config.cluster, entry.scope, config.ranks + config.backup_ranks)
    pauses = entry.pauses if entry.pauses is not None and entry.pauses.probability > 0 else None
    return UnitNoise(
        name=f"transient {index}",
        units=jnp.asarray(together.units(units)),
        count=int(units[-1]) + 1,
        spread=None if entry.spread is None else with_inverse(build_delay(entry.spread)),
        jitter=None if entry.jitter is None else with_inverse(build_delay(entry.jitter)),
        pause=None if pauses is None else with_inverse(build_delay(pauses.delay)),
        pause_probability=0.0 if pauses is None else pauses.probability,
    )


def persistent_factors(
    config: ExperimentConfig, together: Lockstep, key: PRNGKeyArray, realisations: int
) -> NDArray[np.float64]:
    """Persistent factors of all ranks, [realisations, stages, replicas, ranks]; the slowest may have been taken out."""
    ranks = config.ranks + config.backup_ranks
    factor = np.ones((realisations, ranks + config.removed))
    scopes = {
        f"persistent {index}": each.scope for index, each in enumerate(config.cluster.noise.persistent or ())
    }
    for entry in build_persistent(config):
        scope = scopes.get(entry.name, EVERY_RANK_ALONE)
        unit = units_of(config.cluster, scope, factor.shape[1])
        count = int(unit[-1]) + 1
        levels = draw_levels(stream(key, entry.name), (realisations, count))
        if entry.spread is not None:
            drawn = np.asarray(with_inverse(entry.spread).quantile(levels), np.float64)
        else:
            assert entry.fraction is not None
            is_slow = np.asarray(levels) <= math.log(max(float(entry.fraction), 1e-300))
            drawn = np.where(is_slow, float(entry.slowdown), 1.0)
        factor *= drawn[:, unit]
    if not config.removed:
        return factor[:, together.members]
    # Those that are left keep their order.
    left = np.sort(np.argsort(factor, axis=1, kind="stable")[:, :ranks], axis=1)
    return np.take_along_axis(factor, left, axis=1)[:, together.members]


def load_laws(shape: Transformer, plan: Plan) -> tuple[tuple[LoadLaw, ...], NDArray[np.int64]]:
    """The laws of the load of parts with as many layers with experts, and which law is each part's."""
    moe = np.array([[content.moe for content in stage] for stage in contents(shape, plan)])
    if shape.experts is None or (plan.ep == 1 and plan.routing.overflow != "drop"):
        return (), np.zeros_like(moe)
    routing: Routing = routing_of(shape, plan)
    kinds, classes = np.unique(moe, return_inverse=True)
    laws = tuple(load_law(routing, max(int(layers), 1)) for layers in kinds)
    return laws, classes.reshape(moe.shape)


def persistent_loads(
    loads: tuple[LoadLaw, ...], classes: NDArray[np.int64], key: PRNGKeyArray, realisations: int
) -> NDArray[np.float64]:
    """What of the load of each part persists, [realisations, stages, chunks]."""
    if not loads:
        return np.ones((realisations, *classes.shape))
    levels = draw_levels(stream(key, "popularity"), (realisations, *classes.shape))
    drawn = [np.asarray(with_inverse(each.persistent).quantile(levels), np.float64) for each in loads]
    return np.choose(classes[None], drawn)
