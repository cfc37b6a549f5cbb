"""Choosing among algorithms and protocols, by predicted time as NCCL does.

A choice looks at numbers, so it is made outside of compiled code; what it returns (stages) can then be
compiled. For tables over sizes all candidates of a group are priced by one compiled program in which sizes, latencies and
bandwidths are traced; for one choice the formulas are carried out one by one, since compiling them takes seconds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.collectives.candidates import ALL, Candidates, Pair, candidates
from mc.collectives.cost import Cost, total
from mc.collectives.phases import Phase, phases_of
from mc.collectives.registry import CollectiveError
from mc.collectives.stages import AUTO, HIERARCHICAL, Stage, number_of
from mc.config.bus_bandwidth import bus_factor
from mc.config.protocol import NONE
from mc.delays.checks import is_known
from mc.fabric import Cluster, Ranks


@dataclass(frozen=True)
class Row:
    """What one algorithm is predicted to do.

    Attributes:
        algorithm: its name.
        protocol: that of the links; `none` where they have no table; several joined by `+` where the tiers
            of a hierarchical collective differ.
        time: seconds.
        algorithm_bandwidth: size/time in bytes/s; None where nothing takes any time.
        bus_bandwidth: as nccl-tests defines it, bytes/s; None likewise.
        rounds: messages (or switch hops) one after the other.
        bytes_per_rank: what a rank sends, the mean over the ranks.
    """

    algorithm: str
    protocol: str
    time: float
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    rounds: int
    bytes_per_rank: float


def stages(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: ArrayLike,
    algorithm: str = AUTO,
    *,
    protocol: str = AUTO,
) -> tuple[Stage, ...]:
    """Choose how a group carries out a collective.

    Args:
        cluster: the cluster.
        collective: such as `all-reduce`.
        ranks: how many consecutive ranks the group has, or its axes (`mc.config.axes`), innermost first:
            ((8, 16),) is eight ranks that are 16 apart.
        size: bytes, of the whole buffer as in nccl-tests.
        algorithm: a name, `hierarchical` (each tier with its fastest), or `auto` (the fastest of all).
        protocol: a name, `auto` (the fastest), or `none` (latency and bandwidth of the links alone).

    Returns:
        Stages for `phases_of`; none for a single rank.

    Raises:
        InputError: unknown names, a group that does not fit, or an algorithm that cannot serve it.
    """
    found = candidates(cluster, collective, ranks, algorithm, protocol)
    limited = any(each.is_limited for tier in cluster.tiers for each in tier.protocols)
    if len(found.flat) == 1 and not found.slots and not limited:
        return next(iter(found.flat.values()))
    priced = _priced(cluster, found, size, price=price_once)
    return priced[_fastest(priced)][0]


def phases(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: ArrayLike,
    algorithm: str = AUTO,
    *,
    protocol: str = AUTO,
) -> tuple[Phase, ...]:
    """What a collective spends on each tier; the times add up to its cost. Arguments as for `stages`."""
    chosen = stages(cluster, collective, ranks, size, algorithm, protocol=protocol)
    return phases_of(cluster, chosen, size)


def cost(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: ArrayLike,
    algorithm: str = AUTO,
    *,
    protocol: str = AUTO,
) -> Cost:
    """What a collective costs on a cluster. Arguments as for `stages`."""
    found = phases(cluster, collective, ranks, size, algorithm, protocol=protocol)
    return total(phase.cost for phase in found)


def select(cluster: Cluster, collective: str, ranks: Ranks, size: ArrayLike, *, protocol: str = AUTO) -> str:
    """The name of the fastest algorithm by predicted time; the first in the registry among equals."""
    found = candidates(cluster, collective, ranks, AUTO, protocol)
    return _fastest(_priced(cluster, found, size, price=price))[0]


def evaluate(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: float,
    algorithm: str = ALL,
    *,
    protocol: str = AUTO,
) -> list[Row]:
    """Price a collective, fastest algorithm first.

    Arguments as for `stages`; as an algorithm, `all` prices every one that can serve the group, `auto` the
    fastest. As a protocol, `all` prices every one with each algorithm, `auto` the fastest of each.
    """
    found = plans(cluster, collective, ranks, size, algorithm, protocol=protocol)
    return [row for row, _ in found]


def plans(
    cluster: Cluster,
    collective: str,
    ranks: Ranks,
    size: float,
    algorithm: str = ALL,
    *,
    protocol: str = AUTO,
) -> list[tuple[Row, tuple[Stage, ...]]]:
    """Price a collective, and say how it goes. Arguments and order as for `evaluate`."""
    asked = AUTO if algorithm == ALL else algorithm
    found = candidates(cluster, collective, ranks, asked, protocol)
    priced = _priced(cluster, found, size, price=price)
    rows = sorted(
        (
            (_row(pair, cost, collective, number_of(ranks), size), stages)
            for pair, (stages, cost) in priced.items()
        ),
        key=lambda found: found[0].time,
    )
    if algorithm == AUTO:
        return rows[:1]
    if protocol != ALL:
        fastest = {}
        for row, stages in rows:
            fastest.setdefault(row.algorithm, (row, stages))
        rows = list(fastest.values())
    return rows


def _row(pair: Pair, cost: Cost, collective: str, ranks: int, size: float) -> Row:
    time = float(cost.time)
    bandwidth = size / time if time > 0 else None
    bus = None if bandwidth is None else bandwidth * bus_factor(collective, ranks)
    return Row(*pair, time, bandwidth, bus, round(float(cost.rounds)), float(cost.bytes_per_rank))


_Priced = dict[Pair, tuple[tuple[Stage, ...], Cost]]
_Pricing = Callable[..., tuple[list[Cost], list[list[Cost]]]]


def _priced(cluster: Cluster, found: Candidates, size: ArrayLike, price: _Pricing) -> _Priced:
    """Every candidate with its cost; the tiers of the hierarchical one each with the fastest they can have."""
    flat, slots = price(
        cluster,
        tuple(found.flat.values()),
        tuple(tuple(each.values()) for each in found.slots),
        jnp.asarray(size, jnp.result_type(float)),
    )
    priced: _Priced = {
        pair: (each, cost) for (pair, each), cost in zip(found.flat.items(), flat, strict=True)
    }
    if found.slots:
        best = [_least(costs) for costs in slots]
        chosen = [list(each.values())[place] for each, place in zip(found.slots, best, strict=True)]
        # Tiers follow one another, so the fastest on each makes the fastest whole.
        whole = total(costs[place] for costs, place in zip(slots, best, strict=True))
        names = "+".join(dict.fromkeys(each.protocol or NONE for each in chosen))
        priced[HIERARCHICAL, names] = (tuple(chosen), whole)
    return _for_this_size(priced, size)


def _for_this_size(priced: _Priced, size: ArrayLike) -> _Priced:
    """Without protocols that are not for this size, which would never end.

    Raises:
        CollectiveError: none is.
    """
    endless = [
        pair for pair, (_, cost) in priced.items() if is_known(cost.time) and math.isinf(float(cost.time))
    ]
    found = {pair: each for pair, each in priced.items() if pair not in endless}
    if not found:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(protocol for _, protocol in endless))
        raise CollectiveError(
            f"expected a protocol for {float(jnp.asarray(size)):,.0f} bytes; `sizes_from` and `sizes_below` keep {names} from it"
        )
    return found


def _fastest(priced: _Priced) -> Pair:
    pairs = list(priced)
    return pairs[_least([cost for _, cost in priced.values()])]


def _least(costs: list[Cost]) -> int:
    times = [_known(each.time) for each in costs]
    return times.index(min(times))


def _known(value: Float[Array, ""]) -> float:
    if not is_known(value):
        raise CollectiveError(
            "expected numbers to choose an algorithm by; got traced values. Choose with `stages` outside of "
            "compiled code and price the result with `phases_of` inside"
        )
    return float(value)


def price_once(
    cluster: Cluster,
    flat: tuple[tuple[Stage, ...], ...],
    slots: tuple[tuple[Stage, ...], ...],
    size: Array,
) -> tuple[list[Cost], list[list[Cost]]]:
    """The cost of each flat candidate and of each way to fill each slot."""
    whole = [total(phase.cost for phase in phases_of(cluster, each, size)) for each in flat]
    parts = [
        [total(phase.cost for phase in phases_of(cluster, (each,), size)) for each in ways] for ways in slots
    ]
    return whole, parts


# The same, compiled once per group.
price = eqx.filter_jit(price_once)
