"""Every algorithm there is, by collective and name."""

from collections.abc import Mapping
from types import MappingProxyType

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.bidirectional_ring import (
    BidirectionalRingAllGather,
    BidirectionalRingAllReduce,
    BidirectionalRingReduceScatter,
)
from mc.collectives.binomial import BinomialAllReduce, BinomialBroadcast, BinomialReduce
from mc.collectives.bruck import BruckAllToAll
from mc.collectives.direct import DirectAllToAll, DirectSendRecv
from mc.collectives.dissemination import DisseminationBarrier
from mc.collectives.double_tree import DoubleTreeAllReduce
from mc.collectives.gather import BinomialGather, BinomialScatter, DirectGather, DirectScatter
from mc.collectives.halving_doubling import HalvingDoublingAllReduce
from mc.collectives.in_network import (
    InNetworkAllReduce,
    InNetworkBarrier,
    InNetworkBroadcast,
    InNetworkReduce,
)
from mc.collectives.kary import KaryAllReduce, KaryBroadcast, KaryReduce
from mc.collectives.pairwise import PairwiseAllToAll
from mc.collectives.recursive_doubling import RecursiveDoublingAllGather, RecursiveDoublingAllReduce
from mc.collectives.recursive_halving import RecursiveHalvingReduceScatter
from mc.collectives.ring import RingAllGather, RingAllReduce, RingBroadcast, RingReduce, RingReduceScatter
from mc.document import did_you_mean
from mc.errors import InputError

_ALL: tuple[AbstractAlgorithm, ...] = (
    RingAllReduce(),
    BidirectionalRingAllReduce(),
    RecursiveDoublingAllReduce(),
    HalvingDoublingAllReduce(),
    DoubleTreeAllReduce(),
    BinomialAllReduce(),
    KaryAllReduce(),
    InNetworkAllReduce(),
    RingReduce(),
    BinomialReduce(),
    KaryReduce(),
    InNetworkReduce(),
    RingBroadcast(),
    BinomialBroadcast(),
    KaryBroadcast(),
    InNetworkBroadcast(),
    RingAllGather(),
    BidirectionalRingAllGather(),
    RecursiveDoublingAllGather(),
    RingReduceScatter(),
    BidirectionalRingReduceScatter(),
    RecursiveHalvingReduceScatter(),
    PairwiseAllToAll(),
    BruckAllToAll(),
    DirectAllToAll(),
    BinomialGather(),
    DirectGather(),
    BinomialScatter(),
    DirectScatter(),
    DirectSendRecv(),
    DisseminationBarrier(),
    InNetworkBarrier(),
)


class CollectiveError(InputError):
    """A collective cannot be carried out so."""


def _by_collective() -> Mapping[str, Mapping[str, AbstractAlgorithm]]:
    found: dict[str, dict[str, AbstractAlgorithm]] = {}
    for algorithm in _ALL:
        found.setdefault(algorithm.collective, {})[algorithm.name] = algorithm
    return MappingProxyType({name: MappingProxyType(each) for name, each in found.items()})


ALGORITHMS = _by_collective()


def algorithms(collective: str) -> Mapping[str, AbstractAlgorithm]:
    """The algorithms of a collective by name; raises CollectiveError if there is no such collective."""
    if collective not in ALGORITHMS:
        raise CollectiveError(f"unknown collective `{collective}`; {did_you_mean(collective, ALGORITHMS)}")
    return ALGORITHMS[collective]
