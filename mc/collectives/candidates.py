"""Every way to carry out a collective on a group: algorithms, each by the protocols that it can use.

Which there are is a question of names and shapes, not of numbers, so a list of candidates can be made
anywhere, and priced in compiled code.
"""

from dataclasses import dataclass, replace

from mc.collectives.protocols import family
from mc.collectives.refusal import refusal
from mc.collectives.registry import CollectiveError
from mc.collectives.stages import AUTO, HIERARCHICAL, Stage, flat_stages, number_of, slot_stages, slots
from mc.config.protocol import EVERY, NONE
from mc.fabric import Cluster, Ranks, Tier, check_protocol, protocols, span

ALL = EVERY
# An algorithm and a protocol.
Pair = tuple[str, str]


@dataclass(frozen=True)
class Candidates:
    """What a choice is made from.

    Attributes:
        flat: stages among all ranks of the group, by algorithm and protocol.
        slots: for the hierarchical form the ways to do each of its parts; empty where there is none.
    """

    flat: dict[Pair, tuple[Stage, ...]]
    slots: tuple[dict[Pair, Stage], ...]


def candidates(
    cluster: Cluster, collective: str, ranks: Ranks, algorithm: str = AUTO, protocol: str = AUTO
) -> Candidates:
    """The ways to carry out a collective.

    Args:
        cluster: the cluster.
        collective: such as `all-reduce`.
        ranks: how many consecutive ranks the group has, or its axes.
        algorithm: a name, `hierarchical`, or `auto` for all.
        protocol: a name, `none`, or `auto` (or `all`) for all that links have.

    Returns:
        At least one way.

    Raises:
        InputError: unknown names, a group that does not fit, or nothing that can serve it.
    """
    flat = flat_stages(cluster, collective, ranks)
    tiers = tuple(extent.tier for extent in span(cluster, ranks))
    if protocol not in (AUTO, ALL, NONE):
        check_protocol(cluster, tiers, protocol)
    if algorithm not in (AUTO, HIERARCHICAL) and algorithm not in flat:
        raise refusal(cluster, collective, ranks, algorithm)
    found: dict[Pair, tuple[Stage, ...]] = {}
    for name, each in flat.items():
        if algorithm not in (AUTO, name):
            continue
        for one in _usable(tiers, name, protocol):
            found[name, one or NONE] = tuple(replace(stage, protocol=one) for stage in each)
    ways: tuple[dict[Pair, Stage], ...] = ()
    if algorithm in (AUTO, HIERARCHICAL):
        parts = slots(cluster, collective, ranks)
        if algorithm == HIERARCHICAL:
            # One rank has nothing to divide, and needs nothing.
            if not parts and number_of(ranks) > 1:
                raise refusal(cluster, collective, ranks, algorithm)
            if not parts:
                found[HIERARCHICAL, NONE] = ()
        ways = tuple(
            {
                (name, one or NONE): replace(stage, protocol=one)
                for name, stage in slot_stages(part).items()
                for one in _usable((part.extent.tier,), name, protocol)
            }
            for part in parts
        )
        ways = ways if all(ways) else ()
    if not found and not ways:
        raise CollectiveError(
            f"{algorithm} {collective}: expected a protocol that serves {family(algorithm)} algorithms on every "
            f"tier of the group; got `{protocol}`, and {_serving(tiers, algorithm)}"
        )
    return Candidates(found, ways)


def _usable(tiers: tuple[Tier, ...], algorithm: str, protocol: str) -> tuple[str | None, ...]:
    """The protocols to try, None for a line; empty where the algorithm cannot use what is asked for."""
    if protocol == NONE or not tiers:
        return (None,)
    known = protocols(tiers, family(algorithm))
    if protocol in (AUTO, ALL) or known == (None,):
        return known
    return (protocol,) if protocol in known else ()


def _serving(tiers: tuple[Tier, ...], algorithm: str) -> str:
    names = [f"`{each}`" for each in protocols(tiers, family(algorithm))]
    return f"{', '.join(names)} would do" if names else "none does"
