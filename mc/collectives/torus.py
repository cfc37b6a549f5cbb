"""Collectives on a torus or a grid of n₁ × … × n_d units, N in all.

Each link carries b = w/L of a rank's bandwidth w, L being its links. A dimension that wraps has rings in both
directions, ℓᵢ = 2; one that does not has one, out and back along the same line, ℓᵢ = 1 (two hops a round,
since every other unit is skipped each way).

*Multi-ring* reduce-scatter and all-gather use all links at once (N. Jain, Y. Sabharwal, "Optimal bucket
algorithms for large MPI collectives on torus interconnects", ICS 2010; P. Sack, W. Gropp, "Collective algorithms
for multiported torus networks", ACM TOPC 1 (2015)). The buffer is cut in parts that go round the dimensions in
different orders, each part round a ring in n_i − 1 rounds and then, 1/n_i of it, on to the next dimension. So
there are Σ(nᵢ − 1) rounds. How large the parts should be: an order whose first dimensions are the set S puts
1 − Π_S 1/nᵢ of its part on them, which is submodular in S, so the loads that mixtures of orders can reach are
the base polytope of that function and the busiest link carries at least, and with the best mixture exactly,

    B · max over S of (Π_{i ∉ S} 1/nᵢ − 1/N) / Σ_{i ∈ S} ℓᵢ.

In nearly all grids S is all dimensions: then it is (N−1)/N·B over Σℓᵢ links, which no algorithm beats where
every unit has Σℓᵢ (P. Patarasuk, X. Yuan, JPDC 69 (2009), with w = Σℓᵢ·b), or where a corner has no more. On a
cube all parts are equal and the rings run in lockstep; else it is the limit of small pieces, in which the phases
of one part overlap with those of another.

A gather or scatter, spread over the ways to a root in a corner, has the same busiest link: whatever comes along
the dimensions in S comes through it from all Π_S nᵢ − 1 units there and all behind them.

*All-to-all* is bounded by the links across the middle: ⌊nᵢ²/4⌋/(nᵢ·ℓᵢ)·B in dimension i, the largest counts
(messages between opposite units take both ways round, half each).
"""

import itertools
import math

from mc.collectives.bidirectional_ring import BIDIRECTIONAL_RING
from mc.collectives.fixed import FixedAlgorithm
from mc.fabric import Torus

MULTI_RING = "multi-ring"


def torus_algorithms(collective: str, torus: Torus) -> dict[str, FixedAlgorithm]:
    """The algorithms that a torus or grid can carry.

    Args:
        collective: what is to be carried out.
        torus: of the units that take part, two at least.

    Returns:
        By name, each with its counts for this torus; none for a collective that it cannot.
    """
    n, links = torus.size, torus.links
    share = (n - 1) / n
    steps, further = _ring_steps(torus)
    load = links * busiest_link(torus)

    def fixed(
        name: str, *, rounds: float, sent: float, carried: float, combined: float = 0.0, hops: float = 0.0
    ) -> dict[str, FixedAlgorithm]:
        return {name: FixedAlgorithm(name, collective, n, rounds, sent, carried, combined, hops)}

    def round_once(times: int, *, combined: float) -> dict[str, FixedAlgorithm]:
        """One ring through all units, on one link, and the multi-ring, `times` round."""
        # Where there is no ring of neighbours, every other unit is skipped on the way out and back.
        detour = 0 if torus.is_hamiltonian else 1
        rounds = times * (n - 1)
        ring = fixed(
            "ring",
            rounds=rounds,
            sent=times * share,
            carried=times * share * links,
            combined=combined,
            hops=rounds * detour,
        )
        both = fixed(
            BIDIRECTIONAL_RING,
            rounds=rounds,
            sent=times * share,
            carried=times * share * links / 2,
            combined=combined,
        )
        # Out and back along a line, one ring takes the links in both directions.
        ring |= both if torus.is_hamiltonian and 1 not in torus.rings else {}
        return ring | fixed(
            MULTI_RING,
            rounds=times * steps,
            sent=times * share,
            carried=times * load,
            combined=combined,
            hops=times * further,
        )

    match collective:
        case "all-reduce":
            return round_once(2, combined=share) | _recursive_doubling(torus)
        case "reduce-scatter":
            return round_once(1, combined=share)
        case "all-gather":
            return round_once(1, combined=0.0)
        case "broadcast" | "reduce":
            combined = share if collective == "reduce" else 0.0
            # A chain from neighbour to neighbour; a scatter (or gather), straight, and an all-gather (or
            # reduce-scatter).
            chain = fixed("ring", rounds=n - 1, sent=share, carried=links, combined=float(combined > 0))
            return chain | fixed(
                MULTI_RING,
                rounds=1 + steps,
                sent=share / n + share,
                carried=2 * load,
                combined=combined,
                hops=torus.diameter - 1 + further,
            )
        case "all-to-all":
            return fixed(
                "direct",
                rounds=1,
                sent=share,
                carried=links * all_to_all_load(torus),
                hops=torus.diameter - 1,
            )
        case "gather" | "scatter":
            return fixed("direct", rounds=1, sent=share / n, carried=load, hops=torus.diameter - 1)
        case "send-recv":
            apart = int(torus.distance(range(n), [*range(1, n), 0]).max())
            return fixed("direct", rounds=1, sent=1.0, carried=links, hops=apart - 1)
        case "barrier":
            rounds, hops = _dissemination(torus)
            return fixed("dissemination", rounds=rounds, sent=0.0, carried=0.0, hops=hops - rounds)
    return {}


def torus_dilution(name: str, collective: str, torus: Torus) -> float | None:
    """How many times longer bytes take in a flat algorithm of which this torus is one tier.

    None for what a torus cannot carry so: messages to far ranks would cross most of it.
    """
    if name == "ring" or collective == "send-recv":
        return torus.links
    if name == BIDIRECTIONAL_RING:
        return torus.links / 2 if torus.is_hamiltonian and 1 not in torus.rings else None
    if collective in ("gather", "scatter") and name == "direct":
        return torus.links * busiest_link(torus) * torus.size / (torus.size - 1)
    if collective == "all-to-all" and name == "direct":
        # All of a rank's messages at most stay on the torus.
        return torus.links * all_to_all_load(torus) * torus.size / (torus.size - 1)
    return 1.0 if collective == "barrier" and name == "dissemination" else None


def busiest_link(torus: Torus) -> float:
    """What the busiest link carries in a multi-ring reduce-scatter, of the buffer; with the best parts."""
    dims = [(extent, rings) for extent, rings in zip(torus.dims, torus.rings, strict=True) if rings]
    whole = math.prod(extent for extent, _ in dims)
    found = 0.0
    for count in range(1, len(dims) + 1):
        for chosen in itertools.combinations(dims, count):
            inside = math.prod(extent for extent, _ in chosen)
            # Π over the others of 1/n is what is inside over the whole.
            found = max(found, (inside - 1) / whole / sum(rings for _, rings in chosen))
    return found


def all_to_all_load(torus: Torus) -> float:
    """What the busiest link carries in an all-to-all, of a rank's buffer."""
    return max(
        (extent * extent // 4) / (extent * rings)
        for extent, rings in zip(torus.dims, torus.rings, strict=True)
        if rings
    )


def _ring_steps(torus: Torus) -> tuple[int, int]:
    """Rounds of one pass through all dimensions, and hops beyond one per round."""
    steps = [(extent - 1, rings) for extent, rings in zip(torus.dims, torus.rings, strict=True)]
    return sum(step for step, _ in steps), sum(step for step, rings in steps if rings == 1 and step > 1)


def _recursive_doubling(torus: Torus) -> dict[str, FixedAlgorithm]:
    """Exchanges at distances 1, 2, 4, … in each dimension; where all extents are powers of two.

    Σ(nᵢ − 1) hops, half of the multi-ring's; at distance d a link carries d messages, in the widest exchange
    of a dimension that wraps half of that, since there are two ways round.
    """
    if any(extent & (extent - 1) for extent in torus.dims):
        return {}
    rounds = torus.size.bit_length() - 1
    hops = sum(extent - 1 for extent in torus.dims)
    load = sum(
        {0: 0.0, 1: extent - 1, 2: 3 * extent / 4 - 1}[rings]
        for extent, rings in zip(torus.dims, torus.rings, strict=True)
    )
    name = "recursive-doubling"
    return {
        name: FixedAlgorithm(
            name, "all-reduce", torus.size, rounds, rounds, torus.links * load, rounds, hops - rounds
        )
    }


def _dissemination(torus: Torus) -> tuple[int, int]:
    """Rounds and hops of a dissemination barrier in each dimension."""
    rounds = hops = 0
    for extent, wrap in zip(torus.dims, torus.wrap, strict=True):
        for step in range((extent - 1).bit_length()):
            apart = 1 << step
            rounds += 1
            hops += min(apart, extent - apart) if wrap else max(apart, extent - apart)
    return rounds, hops
