"""From the cluster file to the modules of the engine."""

from mc.config import ClusterConfig, TierConfig
from mc.config.shape import FullyConnectedConfig, ShapeConfig, SwitchedConfig, TorusConfig
from mc.config.uneven import place_of
from mc.fabric.cluster import Cluster, Tier
from mc.fabric.link import Link
from mc.fabric.protocol import build_protocol
from mc.fabric.shape import FullyConnected, Level, Shape, Switched, Torus, Tree
from mc.fabric.variation import Variation


def build_cluster(config: ClusterConfig) -> Cluster:
    """The tiers and links of a configuration.

    A rank's bandwidth at a tier is that of one link in one direction, times the links it has, divided by the
    oversubscription.
    """
    names = [tier.name for tier in config.tiers]
    tiers = tuple(
        Tier(
            tier.name,
            Link(latency=tier.link.latency, bandwidth=tier.bandwidth_per_rank),
            fan_out,
            hop_latency=tier.hop_latency,
            reduction_radix=tier.reduction_radix,
            reduction_buffer=tier.reduction_buffer,
            protocols=tuple(build_protocol(each, tier.links_per_rank) for each in tier.link.protocols or ()),
            shape=_shape(tier.shape),
            variations=_variations(tier, index, names),
        )
        for index, (tier, fan_out) in enumerate(zip(config.tiers, config.fan_outs, strict=True))
    )
    return Cluster(config.name, tiers)


def _shape(config: ShapeConfig | None) -> Shape:
    if config is None or isinstance(config, SwitchedConfig):
        return Switched()
    if isinstance(config, FullyConnectedConfig):
        return FullyConnected()
    if isinstance(config, TorusConfig):
        return Torus(config.dims, config.wraps, config.links or 0)
    return Tree(tuple(Level(level.fan_out, level.oversubscription) for level in config.levels))


def _variations(tier: TierConfig, index: int, names: list[str]) -> tuple[Variation, ...]:
    found = []
    for each in tier.exceptions or ():
        latency, bandwidth, link = each.latency_factor, each.bandwidth_factor, each.link
        if link is not None:
            latency *= link.latency / tier.link.latency if tier.link.latency else 1.0
            bandwidth *= link.bandwidth_per_direction / tier.link.bandwidth_per_direction
        place = place_of(each, index, names)
        if place is not None and (latency, bandwidth) != (1.0, 1.0):
            found.append(Variation(each.units, place, latency, bandwidth))
    return tuple(found)
