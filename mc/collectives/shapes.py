"""Which algorithms the shape of a tier can carry, and how much less than its full bandwidth they get.

Behind switches all of `registry.py` run as stated there. A full mesh adds algorithms that use all its links at
once and slows down those that use one; a torus has its own; a tree dilutes what goes through its uplinks. An
algorithm that is not offered here cannot be carried at the cost that it states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.bidirectional_ring import BIDIRECTIONAL_RING
from mc.collectives.fully_connected import ONE_SHOT, mesh_algorithms, mesh_dilution
from mc.collectives.in_network import IN_NETWORK
from mc.collectives.oversubscribed import tree_dilution
from mc.collectives.registry import algorithms
from mc.collectives.torus import MULTI_RING, torus_algorithms, torus_dilution
from mc.fabric import Extent, FullyConnected, Shape, Switched, Torus, Tree

# What only some shapes offer, beside the algorithms of the registry.
_MESH, _TORUS = "a fully connected tier", "a torus"
SHAPED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "all-reduce": {MULTI_RING: _TORUS, "direct": _MESH, ONE_SHOT: _MESH},
        "reduce-scatter": {MULTI_RING: _TORUS, "direct": _MESH},
        "all-gather": {MULTI_RING: _TORUS, "direct": _MESH},
        "broadcast": {MULTI_RING: _TORUS, "direct": _MESH},
        "reduce": {MULTI_RING: _TORUS, "direct": _MESH},
    }
)


@dataclass(frozen=True)
class Fit:
    """An algorithm as a tier carries it.

    Attributes:
        algorithm: with its counts.
        dilution: how many times longer its bytes take than at the full bandwidth of a rank.
        hops: links that a message passes, each with its latency.
    """

    algorithm: AbstractAlgorithm
    dilution: float = 1.0
    hops: int = 1


def known_names(collective: str) -> tuple[str, ...]:
    """The names of all algorithms of a collective, those that need a shape last."""
    return tuple(dict.fromkeys([*algorithms(collective), *SHAPED.get(collective, {})]))


def fits(extent: Extent, collective: str, units: int) -> dict[str, Fit]:
    """The algorithms that can run among `units` units of one tier, by name.

    Each rank has its own peers, in the same place of the other units.
    """
    shape, tier = extent.tier.shape, extent.tier
    # One unit has nothing to do by any of them.
    units = max(units, 2)
    axes = extent.axes if units == extent.units else ((units, extent.axes[0][1]),)
    known = {
        name: each
        for name, each in algorithms(collective).items()
        if name != IN_NETWORK or tier.reduction_radix is not None
    }
    match shape:
        case Switched():
            return {name: Fit(each) for name, each in known.items()}
        case Tree():
            return {
                name: Fit(each, tree_dilution(name, collective, shape, units, 1, axes))
                for name, each in known.items()
            }
        case FullyConnected():
            shared = {
                name: Fit(each, mesh_dilution(name, units, tier.fan_out)) for name, each in known.items()
            }
            own = mesh_algorithms(collective, units, tier.fan_out)
            return shared | {name: Fit(each) for name, each in own.items()}
        case Torus():
            box = shape.box(units, axes)
            own = {} if box is None else torus_algorithms(collective, box)
            return {name: Fit(each) for name, each in own.items() if name in known_names(collective)}


def fits_across(extents: tuple[Extent, ...], collective: str) -> dict[str, tuple[Fit, ...]]:
    """The algorithms that can run flat among all ranks of a group, by name, as each of its tiers carries them."""
    found: dict[str, tuple[Fit, ...]] = {}
    ranks = extents[-1].units_in_all * extents[-1].most_ranks
    for name, each in algorithms(collective).items():
        on_tiers = [_one_of_several(extent, name, each, ranks) for extent in extents]
        known = tuple(fit for fit in on_tiers if fit is not None)
        if len(known) == len(extents):
            found[name] = known
    return found


def described(shape: Shape) -> str:
    """What a shape is called in a message."""
    match shape:
        case Torus():
            return _TORUS
        case FullyConnected():
            return _MESH
        case Tree():
            return "a tree of switches"
        case Switched():
            return "switched"


def _one_of_several(extent: Extent, name: str, algorithm: AbstractAlgorithm, ranks: int) -> Fit | None:
    """How a tier carries its part of a flat algorithm among so many ranks; None if it cannot."""
    tier, units, collective = extent.tier, extent.units, algorithm.collective
    if name == IN_NETWORK and tier.reduction_radix is None:
        return None
    match tier.shape:
        case Switched() if (collective, name) == ("all-to-all", "direct"):
            # Blocks for ranks of the same unit do not come here, and go at the same time.
            return Fit(algorithm, (ranks - extent.fewest_ranks) / (ranks - 1))
        case Switched():
            return Fit(algorithm)
        case Tree():
            # A ring of all ranks is one stream; in switches, each rank's part of a stream is one.
            streams = 1 if name == IN_NETWORK else extent.most_ranks
            dilution = tree_dilution(name, collective, tier.shape, units, streams, extent.axes)
            return Fit(algorithm, dilution)
        case FullyConnected():
            if collective in ("all-to-all", "gather", "scatter") and name == "direct":
                return Fit(algorithm, (tier.fan_out - 1) / (units - 1))
            return Fit(algorithm, mesh_dilution(name, units, tier.fan_out))
        case Torus():
            box = tier.shape.box(units, extent.axes)
            dilution = None if box is None else torus_dilution(name, collective, box)
            if box is None or dilution is None:
                return None
            rings = name in ("ring", BIDIRECTIONAL_RING)
            hops = box.diameter if not rings else 1 if box.is_hamiltonian else 2
            return Fit(algorithm, dilution, hops)
