"""How long a collective takes, as a sample: the floor of the closed form, and what noise adds to it.

Noise goes through the schedule (`method` *schedule*), so that each rank waits for those whose data it needs
and for nobody else. Three shortcuts stand in where the schedule is too long to run:

- *growth*: a ring repeats one round; some are run, the growth per round is carried on (`mc.timing.rings`);
- *tree*: switches have independent subtrees, so their law is computed, not sampled (`mc.timing.switch_tree`);
- *barriers*: each phase ends when its slowest group of ranks is done, as in a step (`phase.py`). That takes
  noise once per phase and group instead of once per message.

Without anything random the time is *fixed*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.typing import NDArray

from mc.collectives import Phase, Stage, phases_of
from mc.collectives.in_network import IN_NETWORK
from mc.delays import AbstractDelay, draw
from mc.exchange.phase import congestion_of_links
from mc.exchange.program import Prepared, prepare, ranks_of
from mc.fabric import Cluster, LinkNoise, simultaneous_senders
from mc.random import draw_levels, stream
from mc.timing import Links, SwitchTier, completion, gather_law, round_trip_law
from mc.timing.rings import FEWEST_ROUNDS, ring_completion

Method = Literal["fixed", "schedule", "growth", "tree", "barriers"]

# Node updates that one answer may cost: a second or two on two cores.
MOST_UPDATES = 200_000_000
# With fewer, a schedule is not worth running.
_FEWEST_SAMPLES = 200


@dataclass(frozen=True)
class SampledTimes:
    """What a collective takes.

    Attributes:
        floor: seconds without noise.
        times: seconds, of each trial.
        method: how they were found.
        relative_error: of the mean, that the method may be off by; 0 where it is exact but for sampling. None
            where it is not known.
    """

    floor: float
    times: NDArray[np.float64]
    method: Method
    relative_error: float | None = 0.0


def sample_times(
    cluster: Cluster,
    stages: Sequence[Stage],
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    samples: int,
    *,
    most_updates: int = MOST_UPDATES,
) -> SampledTimes:
    """Sample the time of a collective under random links.

    Args:
        cluster: where it runs.
        stages: how; from `mc.collectives.stages`.
        size: bytes, of the whole buffer as in nccl-tests.
        noise: what is random, with its tables (`LinkNoise.prepared`).
        key: a threefry key; under one key algorithms and sizes share their link states.
        samples: how many trials; of a schedule that is dear, fewer may be run, 200 at least.
        most_updates: node updates that may be spent; a schedule that takes more is not run, or not to the end.
    """
    phases = phases_of(cluster, stages, size)
    floor = float(sum((phase.cost.time for phase in phases), jnp.zeros(())))
    # Certain, but no part of the closed form: what queues at receivers' ports.
    waits = sum(_incast(noise, phase, stages) for phase in phases)
    found = _sampled(cluster, stages, phases, floor, size, noise, key, samples, most_updates)
    return replace(found, times=found.times + waits) if waits else found


def _incast(noise: LinkNoise, phase: Phase, stages: Sequence[Stage]) -> float:
    law = noise.incast[phase.tier_index] if noise.incast else None
    if law is None or phase.collective != "all-to-all":
        return 0.0
    senders = simultaneous_senders(phase.algorithm, ranks_of(stages) if len(stages) == 1 else phase.units)
    return float((law.factor(senders) - 1) * phase.bandwidth_time)


def _sampled(
    cluster: Cluster,
    stages: Sequence[Stage],
    phases: Sequence[Phase],
    floor: float,
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    samples: int,
    most_updates: int,
) -> SampledTimes:
    tiers = {index for stage in stages for index in stage.tiers}
    shared = any(noise.shared[index] is not None for index in tiers)
    if not (shared or any(noise.jitter[index] is not None for index in tiers)):
        return SampledTimes(floor, np.full(samples, floor), "fixed")
    prepared = prepare(cluster, stages, phases, most_updates=most_updates / _FEWEST_SAMPLES)
    if prepared is not None:
        found = _through_schedule(prepared, phases, floor, size, noise, key, samples, most_updates)
        if found is not None:
            return found
    if stages[0].algorithm.name == IN_NETWORK and len(stages) == 1 and not shared:
        added = _through_switches(cluster, stages[0], noise, key, samples)
        return SampledTimes(floor, floor + added, "tree")
    added = _through_barriers(stages, phases, noise, key, samples)
    return SampledTimes(floor, floor + added, "barriers", None)


def _through_schedule(
    prepared: Prepared,
    phases: Sequence[Phase],
    floor: float,
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    samples: int,
    most_updates: int,
) -> SampledTimes | None:
    links = prepared.links(phases, size, noise)
    own = stream(key, "messages")
    if prepared.rounds is not None:
        return _ring(prepared, links, floor, size, noise, own, samples, most_updates)
    samples = min(samples, most_updates // max(prepared.updates, 1))
    if samples < _FEWEST_SAMPLES:
        return None
    states = prepared.disturbance(noise, stream(key, "link states"), samples)
    times = np.asarray(
        completion(prepared.program, links, size, own, samples, disturbance=states), np.float64
    )
    if prepared.exact:
        return SampledTimes(floor, times, "schedule")
    quiet = prepared.links(phases, size, None)
    base = float(completion(prepared.program, quiet, size, own, 1)[0])
    return SampledTimes(floor, floor + np.maximum(times - base, 0.0), "schedule")


def _ring(
    prepared: Prepared,
    links: Links,
    floor: float,
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    samples: int,
    most_updates: int,
) -> SampledTimes:
    assert prepared.rounds is not None
    # Rounds that must be run anyway are dear on many ranks: fewer trials then.
    least = 2 * FEWEST_ROUNDS * prepared.program.nodes
    samples = min(samples, max(_FEWEST_SAMPLES, most_updates // least))
    states = prepared.disturbance(noise, stream(key, "link states"), samples)
    found = ring_completion(
        prepared.program,
        prepared.rounds,
        links,
        size,
        key,
        samples,
        disturbance=states,
        most_updates=most_updates,
    )
    method = "schedule" if found.rounds_run == found.rounds else "growth"
    return SampledTimes(floor, found.times, method, found.relative_error)


def _through_switches(
    cluster: Cluster, stage: Stage, noise: LinkNoise, key: PRNGKeyArray, samples: int
) -> NDArray[np.float64]:
    """What jitter adds on the way up and down the switches of all tiers."""
    tiers = [
        SwitchTier(units, cluster.tiers[index].reduction_radix or 2, noise.jitter[index])
        for index, units in zip(stage.tiers, stage.units, strict=True)
    ]
    one_way = stage.algorithm.collective in ("reduce", "broadcast")
    law = (gather_law if one_way else round_trip_law)(tiers, stage.ranks)
    if law is None:
        return np.zeros(samples)
    return np.asarray(law.quantile(draw_levels(stream(key, "switches"), (samples,))), np.float64)


def _through_barriers(
    stages: Sequence[Stage],
    phases: Sequence[Phase],
    noise: LinkNoise,
    key: PRNGKeyArray,
    samples: int,
) -> NDArray[np.float64]:
    """The slowest group on each tier, one tier after the other."""
    ranks = ranks_of(stages)
    added = np.zeros(samples)
    whole = tuple(index for stage in stages for index in stage.tiers)
    for place, tier in enumerate(whole):
        links, jitter = noise.shared[tier], noise.jitter[tier]
        # A flat algorithm has one phase, in which messages cross all tiers of its stage.
        phase = phases[min(place, len(phases) - 1)]
        transfer = phase.bandwidth_time + phase.reduction_time
        law = congestion_of_links(transfer, links, ranks, jitter)
        if law is not None:
            added += np.asarray(_draws(law, stream(key, f"phase {place}"), samples), np.float64)
    return added


@eqx.filter_jit
def _draws(law: AbstractDelay, key: PRNGKeyArray, samples: int) -> jax.Array:
    return draw(law, key, samples)
