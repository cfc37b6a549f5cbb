"""Steps without noise, many at a time: closed forms on arrays.

All cells of one structure are one call. Where the algorithm is chosen, every candidate is priced for every cell and each cell
takes its fastest, as `mc.collectives.selection` does for one: among flat algorithms and, tier by tier, for the
hierarchical form. Formulas are carried out array by array, not compiled: each is used once for tens of thousands of
cells, and compiling it would take longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from mc.collectives import phases_of
from mc.collectives.candidates import Candidates, Pair, candidates
from mc.collectives.stages import HIERARCHICAL, Stage
from mc.config import ExperimentConfig
from mc.config.protocol import NONE
from mc.experiment.build import compute_time, incast_time
from mc.fabric import Cluster, build_cluster
from mc.sweep.leaves import Group, put

# Groups are filled up to one of these, so that arrays have few shapes.
_SIZES = (1, 16, 256, 4096, 1 << 16)

_Number = Float[Array, ""]


@dataclass(frozen=True)
class Quiet:
    """Steps of the cells of a group.

    Attributes:
        parts: seconds by part of the waterfall, [cells].
        chosen: which candidate each cell takes; one past the flat ones is the hierarchical form.
        ways: which way it fills each slot, [cells, slots].
        found: the candidates.
    """

    parts: dict[str, NDArray[np.float64]]
    chosen: NDArray[np.int64]
    ways: NDArray[np.int64]
    found: Candidates

    def algorithms(self) -> NDArray[np.str_]:
        """What each cell runs, in words."""
        choices, place = self.choices
        return np.array([self._text(choice) for choice in choices])[place]

    @cached_property
    def choices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The choices that come up, as [chosen, *ways], and by cell which of them it is."""
        is_flat = self.chosen < len(self.found.flat)
        told = np.concatenate([self.chosen[:, None], np.where(is_flat[:, None], 0, self.ways)], axis=1)
        choices, place = np.unique(told, axis=0, return_inverse=True)
        return choices, place.ravel()

    def _text(self, choice: NDArray[np.int64]) -> str:
        pairs = picked(self.found, choice)
        names = ", ".join(name if protocol == NONE else f"{name} ({protocol})" for name, protocol in pairs)
        return names if choice[0] < len(self.found.flat) else f"{HIERARCHICAL}: {names}"


def picked(found: Candidates, choice: Sequence[int] | NDArray[np.int64]) -> list[Pair]:
    """The algorithms and protocols of a choice."""
    flat = list(found.flat)
    if choice[0] < len(flat):
        return [flat[choice[0]]]
    return [list(slot)[way] for slot, way in zip(found.slots, choice[1:], strict=True)]


def stages_of(found: Candidates, choice: Sequence[int] | NDArray[np.int64]) -> tuple[Stage, ...]:
    """The stages of a choice."""
    if choice[0] < len(found.flat):
        return list(found.flat.values())[choice[0]]
    return tuple(list(slot.values())[way] for slot, way in zip(found.slots, choice[1:], strict=True))


def candidates_of(config: ExperimentConfig, cluster: Cluster) -> Candidates:
    """The ways to carry out the exchange of an experiment."""
    exchange, plan = config.model.exchange, config.plan
    assert exchange is not None
    return candidates(cluster, exchange.collective, config.ranks, plan.algorithm, plan.protocol)


def quiet(group: Group) -> Quiet:
    """The steps of the cells of a group whose model computes and exchanges.

    Raises:
        InputError: the collective cannot run so.
        TypeError: a number that differs is one that decides what is computed.
    """
    template, count = group.template, len(group.cells)
    found = candidates_of(template, build_cluster(template.cluster))

    def one(row: Float[Array, " paths"]) -> dict[str, Array]:
        return _priced(put(template, dict(zip(group.paths, row, strict=True))))

    values = jnp.asarray(filled(group.values), jnp.result_type(float))
    drawn = {name: np.asarray(each)[:count] for name, each in jax.vmap(one)(values).items()}
    chosen, ways = drawn.pop("chosen"), drawn.pop("ways")
    parts = {name: each.astype(np.float64) for name, each in drawn.items()}
    return Quiet(parts, chosen.astype(np.int64), ways.astype(np.int64), found)


def filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, and the last one again up to a number of rows that others have, too."""
    size = next(size for size in (*_SIZES, len(values)) if size >= len(values))
    return values[np.minimum(np.arange(size), len(values) - 1)]


def _priced(config: ExperimentConfig) -> dict[str, Array]:
    """Parts of a step, and the choice behind them; numbers of the configuration may be traced."""
    cluster, exchange, compute = build_cluster(config.cluster), config.model.exchange, config.model.compute
    assert exchange is not None
    assert compute is not None
    found = candidates_of(config, cluster)
    costs = [_cost(config, cluster, stages, exchange.size) for stages in found.flat.values()]
    ways = []
    if found.slots:
        slots = [
            jnp.stack([_cost(config, cluster, (way,), exchange.size) for way in slot.values()])
            for slot in found.slots
        ]
        ways = [jnp.argmin(_time(slot)) for slot in slots]
        costs.append(sum((slot[way] for slot, way in zip(slots, ways, strict=True)), jnp.zeros(3)))
    table = jnp.stack(costs)
    chosen = jnp.argmin(_time(table))
    latency, transfer, queueing = table[chosen]
    kinds = config.cluster.classes(compute.format, config.ranks)
    alone = compute_time(config)
    mean = sum(count / rate for count, rate in kinds) / config.ranks
    slowest = max(1 / rate for _, rate in kinds)
    found_parts = {
        "compute": mean * alone,
        "straggler_wait": (slowest - mean) * alone,
        "bandwidth": transfer,
        "latency_floor": latency,
        "congestion": queueing,
    }
    return {name: jnp.asarray(each, jnp.result_type(float)) for name, each in found_parts.items()} | {
        "chosen": chosen,
        "ways": jnp.asarray(ways, jnp.int32),
    }


def _cost(
    config: ExperimentConfig, cluster: Cluster, stages: Sequence[Stage], size: float
) -> Float[Array, " 3"]:
    """Latency, transfer, and queueing of an exchange, seconds."""
    phases = phases_of(cluster, stages, size)
    zero = jnp.zeros((), jnp.result_type(float))
    return jnp.stack(
        [
            sum((each.latency_time for each in phases), zero),
            sum((each.bandwidth_time + each.reduction_time for each in phases), zero),
            sum((incast_time(config, each, config.cluster.tiers[each.tier_index]) for each in phases), zero),
        ]
    )


def _time(costs: Float[Array, "ways 3"]) -> Float[Array, " ways"]:
    return costs[..., 0] + costs[..., 1]
