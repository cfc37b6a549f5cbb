"""How a collective is carried out on a cluster: which algorithm on which tiers, on which part of the data.

Three ways arise from one description:

- *flat*: one algorithm among all ranks of the group, whatever tiers lie between them: one stage over all
  spanned tiers;
- *in-network*: the same, through the reducing switches of each tier;
- *hierarchical*: one stage per tier, or two. All-reduce is a reduce-scatter inside, an all-reduce across with
  the part that each rank then holds, and an all-gather inside (Thakur, Rabenseifner, Gropp 2005 for SMP
  nodes; NCCL and Horovod do so); applied again to the tiers above.

A stage is plain data: choosing it may look at numbers, executing it does not, so a plan that was chosen once
can be compiled and differentiated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.in_network import IN_NETWORK
from mc.collectives.registry import CollectiveError, algorithms
from mc.document import did_you_mean
from mc.fabric import Cluster, Extent, is_even, span

HIERARCHICAL = "hierarchical"
AUTO = "auto"


@dataclass(frozen=True)
class Stage:
    """One algorithm on one or several tiers of a group.

    Attributes:
        algorithm: what runs.
        tiers: indices of the tiers in the cluster, innermost first.
        units: per tier, how many units of the tier below take part.
        ranks: how many peers exchange with each other.
        share: part of the message that this stage's collective is about.
        stripes: per tier, over how many ranks' links a stream of combined data is spread; for in-network
            stages.
    """

    algorithm: AbstractAlgorithm
    tiers: tuple[int, ...]
    units: tuple[int, ...]
    ranks: int
    share: float = 1.0
    stripes: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Slot:
    """A place for an algorithm: what a tier has to do in a hierarchical collective.

    Attributes:
        collective: what has to be done.
        extent: where.
        share: part of the message.
    """

    collective: str
    extent: Extent
    share: float


def flat_stages(cluster: Cluster, collective: str, ranks: int) -> dict[str, tuple[Stage, ...]]:
    """The flat ways to carry out a collective, by name; the in-network one where all spanned tiers reduce."""
    extents = span(cluster, ranks)
    if not extents:
        return {name: () for name in algorithms(collective) if name != IN_NETWORK}
    tiers, units = (tuple(getattr(each, key) for each in extents) for key in ("index", "units"))
    stripes = tuple(_fewest_ranks_in_a_unit(extent, ranks) for extent in extents)
    usable = _usable(algorithms(collective), extents)
    return {name: (Stage(each, tiers, units, ranks, 1.0, stripes),) for name, each in usable.items()}


def slots(cluster: Cluster, collective: str, ranks: int) -> tuple[Slot, ...]:
    """What each tier has to do when a collective goes tier by tier; empty where it cannot.

    It cannot inside a single tier, for send-recv, and where the group fills units unevenly.
    """
    extents = span(cluster, ranks)
    if len(extents) < 2 or not is_even(extents) or collective == "send-recv":
        return ()
    return tuple(_divide(collective, extents, 1.0))


def slot_stages(slot: Slot) -> dict[str, Stage]:
    """The ways to fill a slot, by name."""
    extent = slot.extent
    usable = _usable(algorithms(slot.collective), (extent,))
    return {
        name: Stage(each, (extent.index,), (extent.units,), extent.units, slot.share)
        for name, each in usable.items()
    }


def refusal(cluster: Cluster, collective: str, ranks: int, algorithm: str) -> CollectiveError:
    """Why an algorithm cannot carry out a collective on a group, and what could."""
    known = algorithms(collective)
    extents = span(cluster, ranks)
    names = " x ".join(f"{extent.units} ({extent.tier.name})" for extent in extents) or "1"
    if algorithm == IN_NETWORK and algorithm in known:
        without = [f"`{extent.tier.name}`" for extent in extents if extent.tier.reduction_radix is None]
        reason = (
            f"expected a reduction_radix on every tier that {ranks} ranks span; {', '.join(without)} has none"
            if without
            else "one rank has nothing to reduce"
        )
    elif algorithm == HIERARCHICAL:
        if collective == "send-recv":
            reason = "a send-recv is one message; expected another collective"
        elif not is_even(extents):
            reason = f"expected a group that fills every unit it spans; {ranks} ranks on {names} do not"
        else:
            reason = f"expected a group that spans two tiers or more; {ranks} ranks span {names}"
    else:
        hint = did_you_mean(algorithm, (*known, HIERARCHICAL, AUTO))
        return CollectiveError(f"unknown algorithm `{algorithm}` for {collective}; {hint}")
    return CollectiveError(f"{algorithm} {collective}: {reason}")


def _divide(collective: str, extents: tuple[Extent, ...], share: float) -> list[Slot]:
    inner, outer = extents[0], extents[1:]

    def slot(name: str, part: float) -> list[Slot]:
        return [Slot(name, inner, part)]

    if not outer:
        return slot(collective, share)
    part = share / inner.units
    match collective:
        case "all-reduce":
            across = _divide(collective, outer, part)
            return slot("reduce-scatter", share) + across + slot("all-gather", share)
        case "reduce-scatter":
            return slot(collective, share) + _divide(collective, outer, part)
        case "all-gather":
            return _divide(collective, outer, part) + slot(collective, share)
        case "reduce" | "all-to-all":
            # An all-to-all first brings together, in each unit, what goes to the same place in the others.
            return slot(collective, share) + _divide(collective, outer, share)
        case "broadcast":
            return _divide(collective, outer, share) + slot(collective, share)
        case "barrier":
            return slot("reduce", 0.0) + _divide(collective, outer, share) + slot("broadcast", 0.0)
    raise ValueError(f"expected a collective with a hierarchical form; got {collective}")


def _usable(
    known: Mapping[str, AbstractAlgorithm], extents: tuple[Extent, ...]
) -> dict[str, AbstractAlgorithm]:
    reducing = all(extent.tier.reduction_radix is not None for extent in extents)
    return {name: each for name, each in known.items() if name != IN_NETWORK or reducing}


def _fewest_ranks_in_a_unit(extent: Extent, ranks: int) -> int:
    """How many ranks the last, possibly incomplete unit holds."""
    rest = ranks - (math.ceil(ranks / extent.ranks_per_unit) - 1) * extent.ranks_per_unit
    return min(rest, extent.ranks_per_unit)
