"""Prediction and measurement, log by log.

A prediction is NCCL's: the fastest of ring, tree and reduction in the node's switches, each by the fastest
protocol, from the constants of the catalog and nothing that the logs say. An error is
predicted/measured − 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from experiments.nccl_logs.systems import System
from mc import catalog
from mc.collectives import envelope
from mc.config import ClusterConfig
from mc.fabric import Cluster, build_cluster

NCCL = ("ring", "tree", "in-network")
# More sizes than any log has.
_LENGTH = 2048
_INFINIBAND = catalog.link("InfiniBand-NDR")


@dataclass(frozen=True)
class Curve:
    """One log, or one part of it.

    Attributes:
        log: its name.
        system: what it was measured on.
        source: where it is published.
        sizes: bytes.
        measured: seconds.
    """

    log: str
    system: System
    source: str
    sizes: NDArray[np.float64]
    measured: NDArray[np.float64]


def cluster_of(system: System) -> Cluster:
    """The cluster of a system."""
    return build_cluster(config_of(system))


def config_of(system: System) -> ClusterConfig:
    """The configuration of a system: the chips of a node, its cards shared evenly among them."""
    inside, between = link_of(system.inside), None
    if system.nodes > 1:
        between = link_of(system.between, near=system.near)
    tiers = []
    if system.per_node > 1:
        radix = {"reduction_radix": system.per_node} if system.reduces else {}
        tiers.append({"name": "node", "link": inside, "fan_out": system.per_node, **radix})
    if system.racks > 1:
        tiers.append({"name": "rack", "link": inside, "fan_out": system.nodes // system.racks})
    if between is not None:
        links = system.cards / system.per_node
        units = system.racks if system.racks > 1 else system.nodes
        tiers.append({"name": "network", "link": between, "fan_out": units, "links_per_rank": links})
    # All have one name, so that systems of one structure share a compiled program.
    config = {"name": "system", "chip": {"peak": {}}, "tiers": tiers}
    return ClusterConfig.model_validate(config)


def link_of(name: str, *, near: bool = True) -> dict[str, Any]:
    """A link of the catalog, or a card of so many Gb/s; every network has NCCL's constants.

    What a network's own latency is above that of InfiniBand, its hops take longer.
    """
    if name.endswith("b/s"):
        own: dict[str, Any] = {
            "bandwidth": name,
            "duplex": "each",
            "latency": f"{_INFINIBAND.latency.value:.9g} s",
        }
        return own | {"protocols": _network(0.0, near=near)}
    link = catalog.link(name)
    own: dict[str, Any] = {
        "bandwidth": link.bandwidth.text,
        "duplex": link.duplex,
        "latency": link.latency.text,
    }
    if link.tier == "scale-out":
        return own | {"protocols": _network(link.latency.value - _INFINIBAND.latency.value, near=near)}
    if link.protocols is not None:
        own["protocols"] = [each.values() for each in link.protocols.protocols]
    return own


def _network(extra: float, *, near: bool) -> list[dict[str, Any]]:
    assert _INFINIBAND.protocols is not None
    found = []
    for each in _INFINIBAND.protocols.protocols:
        values = each.values()
        for terms, figures in ((values, each), (values.get("tree", {}), each.tree)):
            if figures is not None and figures.hop_latency is not None:
                terms["hop_latency"] = f"{figures.hop_latency.value + extra:.9g} s"
        if near or each.name != "LL128":
            found.append(values)
    return found


@cache
def _cluster(system: System) -> Cluster:
    return cluster_of(system)


def predict(system: System, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds for each size."""
    cluster = _cluster(system)
    names = algorithms_of(system)
    # Filled up to a common length, so that one compiled program serves logs of any length.
    padded = jnp.asarray(np.pad(sizes, (0, -len(sizes) % _LENGTH), mode="edge"))
    times = envelope(cluster, "all-reduce", cluster.size, padded, names, protocol=system.protocol)
    return np.asarray(times, np.float64)[: len(sizes)]


def algorithms_of(system: System) -> tuple[str, ...]:
    """What NCCL chooses from: what it was told, or what it has on such a node.

    Switches reduce within one node, by Simple only, and for more than two chips, who alone have a use for it.
    """
    if system.algorithm != "auto":
        return (system.algorithm,)
    reduces = system.reduces and system.nodes == 1 and system.nodes * system.per_node > 2
    return NCCL if reduces and system.protocol in ("auto", "Simple") else NCCL[:2]


def errors(curves: Iterable[Curve]) -> NDArray[np.float64]:
    """predicted/measured − 1 of every row."""
    return np.concatenate([predict(each.system, each.sizes) / each.measured - 1 for each in curves])
