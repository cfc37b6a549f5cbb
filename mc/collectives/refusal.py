"""Why an algorithm cannot carry out a collective on a group of ranks, in words that say what could."""

from mc.collectives.in_network import IN_NETWORK
from mc.collectives.registry import CollectiveError
from mc.collectives.shapes import SHAPED, described, known_names
from mc.collectives.stages import AUTO, EQUAL_PARTS, HIERARCHICAL, flat_stages, number_of
from mc.document import did_you_mean
from mc.fabric import Cluster, Ranks, is_even, span


def refusal(cluster: Cluster, collective: str, group: Ranks, algorithm: str) -> CollectiveError:
    """Why an algorithm cannot carry out a collective on a group, and what could."""
    known = known_names(collective)
    extents, ranks = span(cluster, group), number_of(group)
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
        elif not is_even(extents) and collective in EQUAL_PARTS:
            reason = f"expected a group that fills every unit it spans; {ranks} ranks on {names} do not"
        elif len(extents) < 2:
            reason = f"expected a group that spans two tiers or more; {ranks} ranks span {names}"
        else:
            reason = f"expected whole lines and planes of each torus; {ranks} ranks span {names}"
    elif algorithm in known:
        offered = list(flat_stages(cluster, collective, group))
        shaped = SHAPED.get(collective, {}).get(algorithm)
        wanted = "switches between all units" if shaped is None else f"a group inside {shaped}"
        shapes = ", ".join(f"`{each.tier.name}` is {described(each.tier.shape)}" for each in extents)
        reason = f"expected {wanted}; {shapes}. There, one of {', '.join((*offered, AUTO))} would do"
    else:
        hint = did_you_mean(algorithm, (*known, HIERARCHICAL, AUTO))
        return CollectiveError(f"unknown algorithm `{algorithm}` for {collective}; {hint}")
    return CollectiveError(f"{algorithm} {collective}: {reason}")
