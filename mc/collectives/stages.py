"""How a collective is carried out on a cluster: which algorithm on which tiers, on which part of the data.

Three ways arise from one description:

- *flat*: one algorithm among all ranks of the group, whatever tiers lie between them: one stage over all
  spanned tiers;
- *in-network*: the same, through the reducing switches of each tier;
- *hierarchical*: one stage per tier, or two. All-reduce is a reduce-scatter inside, an all-reduce across with
  the part that each rank then holds, and an all-gather inside (Thakur, Rabenseifner, Gropp 2005 for SMP
  nodes; NCCL and Horovod do so); applied again to the tiers above.

Where units hold different numbers of ranks, the smallest, c, sets the parts: the reduce-scatter inside leaves
B/c on c ranks of each unit, which go on across. A unit of u ranks runs the algorithm it would run on a buffer
of u/c·B, of which only c parts are there; so all units take part in every algorithm, and the one that takes
longest decides. If some unit has one rank only, one rank of each, the leader, goes across with all of B.

A stage is plain data: choosing it may look at numbers, executing it does not, so a plan that was chosen once
can be compiled and differentiated.
"""

import math
from dataclasses import dataclass, replace

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.in_network import IN_NETWORK
from mc.collectives.registry import CollectiveError, algorithms
from mc.collectives.shapes import SHAPED, Fit, described, fits, fits_across, known_names
from mc.config.axes import count
from mc.fabric import Cluster, Combination, Extent, Kind, Ranks, Switched, Torus, is_even, span

HIERARCHICAL = "hierarchical"
AUTO = "auto"
# Every rank has as much of the result, or of the data, as any other.
EQUAL_PARTS = ("reduce-scatter", "all-gather", "all-to-all", "gather", "scatter")


@dataclass(frozen=True)
class Stage:
    """One algorithm on one or several tiers of a group.

    Attributes:
        algorithm: what runs.
        tiers: indices of the tiers in the cluster, innermost first.
        units: per tier, how many units of the tier below take part.
        ranks: how many peers exchange with each other.
        share: part of the message that this stage's collective is about.
        stripes: per tier, over how many ranks' links one stream of the whole group is spread.
        protocol: the name of the protocol on every tier that has a table; None for latency and bandwidth
            alone.
        units_in_all: per tier, how many units of the tier below the whole group has, rounded up.
        width: per tier, how many ranks a unit of the tier below has, which share its limits.
        dilutions: per tier, how many times longer bytes take than at the full bandwidth of a rank; all 1 if
            empty.
        hops: per tier, how many links a message passes; all 1 if empty.
        links: per tier, the combinations of its variations that some rank has; none if empty.
        kinds: where units of the tier differ, the stage of each kind of them; the slowest decides.
        count: how many units are of this kind.
        filled: part of `share` that is there, and not padding for a unit that is larger than others.
    """

    algorithm: AbstractAlgorithm
    tiers: tuple[int, ...]
    units: tuple[int, ...]
    ranks: int
    share: float = 1.0
    stripes: tuple[int, ...] = (1,)
    protocol: str | None = None
    units_in_all: tuple[int, ...] = (1,)
    width: tuple[int, ...] = (1,)
    dilutions: tuple[float, ...] = ()
    hops: tuple[int, ...] = ()
    links: tuple[tuple[Combination, ...], ...] = ()
    kinds: "tuple[Stage, ...]" = ()
    count: int = 1
    filled: float = 1.0


@dataclass(frozen=True)
class Slot:
    """A place for an algorithm: what a tier has to do in a hierarchical collective.

    Attributes:
        collective: what has to be done.
        extent: where.
        share: part of the message.
        parts: into how many it is cut among the units, where they hold different numbers; None if each unit
            exchanges all of it.
    """

    collective: str
    extent: Extent
    share: float
    parts: int | None = None


def number_of(ranks: Ranks) -> int:
    """How many ranks a group has."""
    return count(ranks) if isinstance(ranks, tuple) else ranks


def flat_stages(cluster: Cluster, collective: str, ranks: Ranks) -> dict[str, tuple[Stage, ...]]:
    """The flat ways to carry out a collective, by name; the in-network one where all spanned tiers reduce."""
    extents = span(cluster, ranks)
    if not extents:
        return {name: () for name in _names_for_one(cluster, collective)}
    tiers, units = (tuple(getattr(each, key) for each in extents) for key in ("index", "units"))
    stripes = tuple(extent.fewest_ranks for extent in extents)
    in_all = tuple(extent.units_in_all for extent in extents)
    width = tuple(extent.ranks_per_unit for extent in extents)
    if len(extents) == 1:
        usable = {name: (fit,) for name, fit in fits(extents[0], collective, extents[0].units).items()}
    else:
        usable = fits_across(extents, collective)
    if not usable and not slots(cluster, collective, ranks):
        raise _misfit(collective, number_of(ranks), extents)
    return {
        name: (
            Stage(
                each[-1].algorithm,
                tiers,
                units,
                number_of(ranks),
                1.0,
                stripes,
                None,
                in_all,
                width,
                dilutions=tuple(fit.dilution for fit in each),
                hops=tuple(fit.hops for fit in each),
                links=tuple(extent.links for extent in extents),
            ),
        )
        for name, each in usable.items()
    }


def _names_for_one(cluster: Cluster, collective: str) -> tuple[str, ...]:
    """What a single rank may be asked to run: all that this cluster might offer to several."""
    shapes = {described(tier.shape) for tier in cluster.tiers}
    shaped = SHAPED.get(collective, {})
    return tuple(
        name
        for name in known_names(collective)
        if name != IN_NETWORK and (name in algorithms(collective) or shaped[name] in shapes)
    )


def slots(cluster: Cluster, collective: str, ranks: Ranks) -> tuple[Slot, ...]:
    """What each tier has to do when a collective goes tier by tier; empty where it cannot.

    It cannot inside a single tier, for send-recv, and where a result is to be in equal parts on units of
    different sizes.
    """
    extents = span(cluster, ranks)
    if len(extents) < 2 or collective == "send-recv":
        return ()
    if not is_even(extents) and collective in EQUAL_PARTS:
        return ()
    found = tuple(_divide(collective, extents, 1.0))
    return found if all(slot_stages(slot) for slot in found) else ()


def slot_stages(slot: Slot) -> dict[str, Stage]:
    """The ways to fill a slot, by name."""
    of_kinds = [
        {
            name: _slot_stage(slot, kind, fit)
            for name, fit in fits(slot.extent, slot.collective, kind.units).items()
        }
        for kind in slot.extent.kinds
    ]
    # The largest stands for all where they do the same.
    largest = max(range(len(of_kinds)), key=lambda place: slot.extent.kinds[place].units)
    found: dict[str, Stage] = {}
    for name, stage in of_kinds[largest].items():
        kinds = tuple(each[name] for each in of_kinds if name in each)
        if len(kinds) == len(of_kinds):
            found[name] = stage if len(kinds) == 1 else replace(stage, kinds=kinds)
    return found


def _slot_stage(slot: Slot, kind: Kind, fit: Fit) -> Stage:
    extent = slot.extent
    padded = 1.0 if slot.parts is None else kind.units / slot.parts
    return Stage(
        fit.algorithm,
        (extent.index,),
        (kind.units,),
        kind.units,
        slot.share * padded,
        units_in_all=(kind.units,),
        width=(extent.ranks_per_unit,),
        dilutions=(fit.dilution,),
        hops=(fit.hops,),
        links=(kind.links,),
        count=kind.count,
        filled=1 / padded,
    )


def _misfit(collective: str, ranks: int, extents: tuple[Extent, ...]) -> CollectiveError:
    """Why nothing can serve a group: its units form no box of a torus, or would have to send right through it."""
    for extent in extents:
        torus = extent.tier.shape
        if isinstance(torus, Torus) and torus.box(extent.units, extent.axes) is None:
            if extent.axes != ((extent.units, 1),):
                return CollectiveError(
                    f"{collective}: expected whole lines and planes of the torus; {ranks} ranks take units of "
                    f"`{extent.tier.name}` with others between them"
                )
            below = max(size for size in torus.boxes() if size < extent.units)
            above = min(size for size in torus.boxes() if size > extent.units)
            grid = "x".join(str(each) for each in torus.dims)
            return CollectiveError(
                f"{collective}: expected whole lines and planes of the {grid} torus, such as {below} or {above} "
                f"units; {ranks} ranks take {extent.units} units of `{extent.tier.name}`"
            )
    shapes = ", ".join(
        f"`{each.tier.name}` is {described(each.tier.shape)}"
        for each in extents
        if not isinstance(each.tier.shape, Switched)
    )
    return CollectiveError(
        f"{collective}: nothing can serve {ranks} ranks that fill units unevenly; {shapes}"
    )


def _divide(collective: str, extents: tuple[Extent, ...], share: float) -> list[Slot]:
    inner, outer = extents[0], extents[1:]

    def slot(name: str, part: float, parts: int | None = None) -> list[Slot]:
        return [Slot(name, inner, part, parts)]

    if not outer:
        return slot(collective, share)
    parts = inner.fewest_units
    part = share / parts
    match collective:
        case "all-reduce" if parts == 1:
            return slot("reduce", share) + _divide(collective, outer, share) + slot("broadcast", share)
        case "all-reduce":
            across = _divide(collective, outer, part)
            return slot("reduce-scatter", share, parts) + across + slot("all-gather", share, parts)
        case "reduce-scatter":
            return slot(collective, share, parts) + _divide(collective, outer, part)
        case "all-gather":
            return _divide(collective, outer, part) + slot(collective, share, parts)
        case "reduce" | "all-to-all":
            # An all-to-all first brings together, in each unit, what goes to the same place in the others.
            return slot(collective, share) + _divide(collective, outer, share)
        case "broadcast":
            return _divide(collective, outer, share) + slot(collective, share)
        case "gather" | "scatter":
            # Inside a unit is that unit's part of the buffer.
            inside = slot(collective, share / math.prod(extent.units for extent in outer))
            across = _divide(collective, outer, share)
            return inside + across if collective == "gather" else across + inside
        case "barrier":
            return slot("reduce", 0.0) + _divide(collective, outer, share) + slot("broadcast", 0.0)
    raise ValueError(f"expected a collective with a hierarchical form; got {collective}")
