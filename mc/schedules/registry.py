"""Every schedule there is, by collective and algorithm, and `build`, which checks what it is asked for."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mc.document import did_you_mean
from mc.schedules.all_to_all import bruck_all_to_all, direct_all_to_all, direct_send_recv, pairwise_all_to_all
from mc.schedules.byte_matrix import weighted
from mc.schedules.checks import at_least, matrix_of, product
from mc.schedules.direct import (
    direct_all_gather,
    direct_all_reduce,
    direct_broadcast,
    direct_reduce,
    direct_reduce_scatter,
    one_shot_all_reduce,
)
from mc.schedules.dissemination import dissemination_barrier
from mc.schedules.double_tree import double_tree_all_reduce
from mc.schedules.gather import binomial_gather, binomial_scatter, direct_gather, direct_scatter
from mc.schedules.halving_doubling import (
    halving_doubling_all_reduce,
    recursive_doubling_all_gather,
    recursive_doubling_all_reduce,
    recursive_halving_reduce_scatter,
)
from mc.schedules.hierarchical import DEFAULTS, compose, stages
from mc.schedules.in_network import (
    in_network_all_reduce,
    in_network_barrier,
    in_network_broadcast,
    in_network_reduce,
)
from mc.schedules.kary import (
    binomial_all_reduce,
    binomial_broadcast,
    binomial_reduce,
    kary_all_reduce,
    kary_broadcast,
    kary_reduce,
)
from mc.schedules.multi_ring import (
    multi_ring_all_gather,
    multi_ring_all_reduce,
    multi_ring_broadcast,
    multi_ring_reduce,
    multi_ring_reduce_scatter,
)
from mc.schedules.options import Options
from mc.schedules.ring import (
    bidirectional_all_gather,
    bidirectional_all_reduce,
    bidirectional_reduce_scatter,
    chain_broadcast,
    chain_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from mc.schedules.schedule import Schedule, ScheduleError

HIERARCHICAL = "hierarchical"

Builder = Callable[[Options], Schedule]

SCHEDULES: Mapping[str, Mapping[str, Builder]] = MappingProxyType(
    {
        "all-reduce": {
            "ring": ring_all_reduce,
            "bidirectional-ring": bidirectional_all_reduce,
            "recursive-doubling": recursive_doubling_all_reduce,
            "halving-doubling": halving_doubling_all_reduce,
            "tree": double_tree_all_reduce,
            "binomial": binomial_all_reduce,
            "k-ary": kary_all_reduce,
            "in-network": in_network_all_reduce,
            "direct": direct_all_reduce,
            "one-shot": one_shot_all_reduce,
            "multi-ring": multi_ring_all_reduce,
        },
        "reduce": {
            "ring": chain_reduce,
            "binomial": binomial_reduce,
            "k-ary": kary_reduce,
            "in-network": in_network_reduce,
            "direct": direct_reduce,
            "multi-ring": multi_ring_reduce,
        },
        "broadcast": {
            "ring": chain_broadcast,
            "binomial": binomial_broadcast,
            "k-ary": kary_broadcast,
            "in-network": in_network_broadcast,
            "direct": direct_broadcast,
            "multi-ring": multi_ring_broadcast,
        },
        "all-gather": {
            "ring": ring_all_gather,
            "bidirectional-ring": bidirectional_all_gather,
            "recursive-doubling": recursive_doubling_all_gather,
            "direct": direct_all_gather,
            "multi-ring": multi_ring_all_gather,
        },
        "reduce-scatter": {
            "ring": ring_reduce_scatter,
            "bidirectional-ring": bidirectional_reduce_scatter,
            "recursive-halving": recursive_halving_reduce_scatter,
            "direct": direct_reduce_scatter,
            "multi-ring": multi_ring_reduce_scatter,
        },
        "all-to-all": {
            "pairwise": pairwise_all_to_all,
            "bruck": bruck_all_to_all,
            "direct": direct_all_to_all,
        },
        "send-recv": {"direct": direct_send_recv},
        "gather": {"binomial": binomial_gather, "direct": direct_gather},
        "scatter": {"binomial": binomial_scatter, "direct": direct_scatter},
        "barrier": {"dissemination": dissemination_barrier, "in-network": in_network_barrier},
    }
)


def build(
    collective: str,
    algorithm: str,
    ranks: int,
    *,
    radix: int | Sequence[int] = 4,
    pieces: int = 16,
    units: Sequence[int | Sequence[int]] = (),
    algorithms: Sequence[str] = (),
    byte_matrix: Any = None,
) -> Schedule:
    """The schedule of an algorithm; the root, where there is one, is rank 0.

    Args:
        collective: such as `all-reduce`.
        algorithm: such as `ring`, or `hierarchical`.
        ranks: n, at least 1; one rank sends nothing.
        radix: k of k-ary and in-network trees; one for all tiers, or one per tier, innermost first.
        pieces: that pipelined algorithms cut the buffer (or each tree's half of it) into.
        units: peers per tier, innermost first: of a hierarchical composition, where a torus tier may state
            its sides; of an in-network tree, where the outermost units may be incomplete; or the sides of
            the torus of `multi-ring`. Other algorithms do not look at it.
        algorithms: of the stages of a hierarchical composition, in the order of `stages`; by default one
            that serves any number of ranks.
        byte_matrix: [n, n], bytes from i to j, for all-to-all; the schedule's buffer is then the mean of the
            row sums.

    Raises:
        ScheduleError: names or numbers that do not do.
    """
    if collective not in SCHEDULES:
        raise ScheduleError(f"unknown collective `{collective}`; {did_you_mean(collective, SCHEDULES)}")
    known = SCHEDULES[collective]
    composes = algorithm == HIERARCHICAL and collective in DEFAULTS
    if algorithm not in known and not composes:
        names = (*known, HIERARCHICAL) if collective in DEFAULTS else tuple(known)
        raise ScheduleError(
            f"unknown algorithm `{algorithm}` for {collective}; {did_you_mean(algorithm, names)}"
        )
    ranks = at_least("ranks", ranks, 1)
    radices = tuple(at_least("radix", each, 2) for each in _several("radix", radix))
    # Pieces of nothing are one piece.
    pieces = 1 if collective == "barrier" else at_least("pieces", pieces, 1)
    matrix = None if byte_matrix is None else matrix_of(collective, ranks, byte_matrix)
    whole = Options(ranks, radices, pieces)
    if composes:
        tiers = [
            Options(math.prod(sides), (whole.radix_of(tier),), pieces, sides)
            for tier, sides in enumerate(_sides(units))
        ]
        product("units", tuple(each.ranks for each in tiers), ranks)
        schedule = compose(collective, tuple(tiers), _chosen(collective, len(tiers), algorithms), _flat)
    else:
        if algorithms:
            raise ScheduleError(f"algorithms: expected none but for `{HIERARCHICAL}`; got {list(algorithms)}")
        extents: tuple[int, ...] = ()
        if algorithm in ("in-network", "multi-ring"):
            extents = tuple(at_least("units", each, 1) for each in units) or (ranks,)
            product("units", extents, ranks, uneven="yes" if algorithm == "in-network" else "no")
        schedule = known[algorithm](dataclasses.replace(whole, units=extents))
    return schedule if matrix is None else weighted(schedule, matrix)


def _flat(collective: str, algorithm: str, options: Options) -> Schedule:
    if algorithm != "multi-ring":
        options = dataclasses.replace(options, units=())
    return SCHEDULES[collective][algorithm](options)


def _several(name: str, value: Any) -> tuple[Any, ...]:
    several = tuple(value) if isinstance(value, Sequence) else (value,)
    if not several:
        raise ScheduleError(f"{name}: expected at least one number; got none")
    return several


def _sides(units: Sequence[int | Sequence[int]]) -> list[tuple[int, ...]]:
    if not units:
        raise ScheduleError(f"units: expected the peers of each tier for `{HIERARCHICAL}`; got none")
    return [tuple(at_least("units", side, 1) for side in _several("units", each)) for each in units]


def _chosen(collective: str, tiers: int, algorithms: Sequence[str]) -> tuple[str, ...]:
    plan = stages(collective, tiers)
    if not algorithms:
        return tuple(DEFAULTS[name] for name, _ in plan)
    if len(algorithms) != len(plan):
        names = ", ".join(f"{name} in tier {tier}" for name, tier in plan)
        raise ScheduleError(
            f"algorithms: expected one for each of {len(plan)} stages ({names}); got {len(algorithms)}"
        )
    for (name, _), algorithm in zip(plan, algorithms, strict=True):
        if algorithm not in SCHEDULES[name]:
            hint = did_you_mean(algorithm, SCHEDULES[name])
            raise ScheduleError(f"algorithms: unknown algorithm `{algorithm}` for {name}; {hint}")
    return tuple(algorithms)
