"""From the cluster file to the modules of the engine."""

from mc.config import ClusterConfig
from mc.fabric.cluster import Cluster, Tier
from mc.fabric.link import Link


def build_cluster(config: ClusterConfig) -> Cluster:
    """The tiers and links of a configuration.

    A rank's bandwidth at a tier is that of one link in one direction, times the links it has, divided by the
    oversubscription.
    """
    tiers = tuple(
        Tier(
            tier.name,
            Link(latency=tier.link.latency, bandwidth=tier.bandwidth_per_rank),
            tier.fan_out,
            hop_latency=tier.hop_latency,
            reduction_radix=tier.reduction_radix,
        )
        for tier in config.tiers
    )
    return Cluster(config.name, tiers)
