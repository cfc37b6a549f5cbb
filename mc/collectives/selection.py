"""Choosing among algorithms, by predicted time as NCCL does.

A choice looks at numbers, so it is made outside of compiled code; what it returns (stages) can then be
compiled. Candidates are priced together by compiled functions in which sizes, latencies and bandwidths are
traced.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.bus_bandwidth import bus_factor
from mc.collectives.cost import Cost, Machine, total
from mc.collectives.phases import Phase, machine_of, phases_of
from mc.collectives.registry import CollectiveError
from mc.collectives.stages import (
    AUTO,
    HIERARCHICAL,
    Slot,
    Stage,
    flat_stages,
    refusal,
    slot_stages,
    slots,
)
from mc.delays.checks import is_known
from mc.fabric import Cluster

ALL = "all"


@dataclass(frozen=True)
class Row:
    """What one algorithm is predicted to do.

    Attributes:
        algorithm: its name.
        time: seconds.
        algorithm_bandwidth: size/time in bytes/s; None where nothing takes any time.
        bus_bandwidth: as nccl-tests defines it, bytes/s; None likewise.
        rounds: messages (or switch hops) one after the other.
        bytes_per_rank: what a rank sends, the mean over the ranks.
    """

    algorithm: str
    time: float
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    rounds: int
    bytes_per_rank: float


def stages(
    cluster: Cluster, collective: str, ranks: int, size: ArrayLike, algorithm: str = AUTO
) -> tuple[Stage, ...]:
    """Choose how a group carries out a collective.

    Args:
        cluster: the cluster.
        collective: such as `all-reduce`.
        ranks: consecutive ranks in the group.
        size: bytes, of the whole buffer as in nccl-tests.
        algorithm: a name, `hierarchical` (each tier with its fastest), or `auto` (the fastest of all).

    Returns:
        Stages for `phases_of`; none for a single rank.

    Raises:
        InputError: unknown names, a group that does not fit, or an algorithm that cannot serve it.
    """
    if algorithm == AUTO:
        candidates = plans(cluster, collective, ranks, size)
        return candidates[_fastest(cluster, candidates, size)]
    if algorithm == HIERARCHICAL:
        parts = slots(cluster, collective, ranks)
        # One rank has nothing to divide, and needs nothing.
        if not parts and ranks > 1:
            raise refusal(cluster, collective, ranks, algorithm)
        return _best_stages(cluster, parts, size)
    flat = flat_stages(cluster, collective, ranks)
    if algorithm not in flat:
        raise refusal(cluster, collective, ranks, algorithm)
    return flat[algorithm]


def plans(cluster: Cluster, collective: str, ranks: int, size: ArrayLike) -> dict[str, tuple[Stage, ...]]:
    """Every way to carry out a collective on a group, by the name of its algorithm."""
    found = flat_stages(cluster, collective, ranks)
    parts = slots(cluster, collective, ranks)
    return found | ({HIERARCHICAL: _best_stages(cluster, parts, size)} if parts else {})


def phases(
    cluster: Cluster, collective: str, ranks: int, size: ArrayLike, algorithm: str = AUTO
) -> tuple[Phase, ...]:
    """What a collective spends on each tier; the times add up to its cost. Arguments as for `stages`."""
    return phases_of(cluster, stages(cluster, collective, ranks, size, algorithm), size)


def cost(cluster: Cluster, collective: str, ranks: int, size: ArrayLike, algorithm: str = AUTO) -> Cost:
    """What a collective costs on a cluster. Arguments as for `stages`."""
    return total(phase.cost for phase in phases(cluster, collective, ranks, size, algorithm))


def select(cluster: Cluster, collective: str, ranks: int, size: ArrayLike) -> str:
    """The name of the fastest algorithm by predicted time; the first in the registry among equals."""
    return _fastest(cluster, plans(cluster, collective, ranks, size), size)


def evaluate(cluster: Cluster, collective: str, ranks: int, size: float, algorithm: str = ALL) -> list[Row]:
    """Price a collective, fastest algorithm first.

    Arguments as for `stages`; `all` prices every algorithm that can serve the group, `auto` the fastest.
    """
    candidates = plans(cluster, collective, ranks, size)
    if algorithm == AUTO:
        fastest = _fastest(cluster, candidates, size)
        candidates = {fastest: candidates[fastest]}
    elif algorithm != ALL:
        candidates = {algorithm: stages(cluster, collective, ranks, size, algorithm)}
    costs = _costs_of_plans(cluster, candidates, size)
    rows = [_row(name, each, collective, ranks, size) for name, each in zip(candidates, costs, strict=True)]
    return sorted(rows, key=lambda row: row.time)


def _row(name: str, cost: Cost, collective: str, ranks: int, size: float) -> Row:
    time = float(cost.time)
    bandwidth = size / time if time > 0 else None
    bus = None if bandwidth is None else bandwidth * bus_factor(collective, ranks)
    return Row(name, time, bandwidth, bus, round(float(cost.rounds)), float(cost.bytes_per_rank))


def _fastest(cluster: Cluster, candidates: dict[str, tuple[Stage, ...]], size: ArrayLike) -> str:
    return _least(list(candidates), _costs_of_plans(cluster, candidates, size))


def _best_stages(cluster: Cluster, parts: tuple[Slot, ...], size: ArrayLike) -> tuple[Stage, ...]:
    """The fastest algorithm for each slot; tiers follow one another, so the whole is the fastest too."""
    best: list[Stage] = []
    for part in parts:
        candidates = slot_stages(part)
        machine = machine_of(cluster, (part.extent.tier,))
        known = tuple(stage.algorithm for stage in candidates.values())
        costs = _price(known, jnp.asarray(part.extent.units), jnp.asarray(size) * part.share, machine)
        best.append(candidates[_least(list(candidates), costs)])
    return tuple(best)


def _least(names: list[str], costs: list[Cost]) -> str:
    times = [_known(each.time) for each in costs]
    return names[times.index(min(times))]


def _known(value: Float[Array, ""]) -> float:
    if not is_known(value):
        raise CollectiveError(
            "expected numbers to choose an algorithm by; got traced values. Choose with `stages` outside of "
            "compiled code and price the result with `phases_of` inside"
        )
    return float(value)


def _costs_of_plans(
    cluster: Cluster, candidates: dict[str, tuple[Stage, ...]], size: ArrayLike
) -> list[Cost]:
    return _price_plans(cluster, tuple(candidates.values()), jnp.asarray(size, jnp.result_type(float)))


@eqx.filter_jit
def _price(
    candidates: tuple[AbstractAlgorithm, ...], ranks: Array, size: Array, machine: Machine
) -> list[Cost]:
    """Compiled once per collective: every number is traced."""
    return [each.cost(ranks, size, machine) for each in candidates]


@eqx.filter_jit
def _price_plans(cluster: Cluster, candidates: tuple[tuple[Stage, ...], ...], size: Array) -> list[Cost]:
    """Compiled once per shape of the group."""
    return [total(phase.cost for phase in phases_of(cluster, each, size)) for each in candidates]
