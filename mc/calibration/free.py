"""Which parameters are free where nobody chose: those that the measured collectives depend on.

Of every tier that they span the bandwidth, and latency where it is no protocol's; of every protocol that can be used and
every family of algorithms that is tried, all its figures. A base latency is the library's and not a tier's, so
the tiers share one. NCCL's factors on a tree's bandwidth by size go (`uncorrected`): its tuner measured them on other
machines, and the channels that small messages fill say the same here. With them, sizes held out of a dozen logs are missed by
5.9 %, without by 4.0 %. Many of these are not told apart by one log; the priors keep what data leave free.
"""

from collections.abc import Iterable

from mc.calibration.curves import Curve
from mc.calibration.parameters import Parameter, Parameters, parameter_at
from mc.catalog import PROTOCOL_FIGURES
from mc.collectives.protocols import family
from mc.config import ClusterConfig
from mc.config.figures import PathError, figure_at, with_figures
from mc.config.protocol import Family
from mc.fabric import build_cluster, protocols, span

# The base latency is paid once per collective, so it is one figure for all tiers.
_OF_A_TIER = tuple(key for key in PROTOCOL_FIGURES if key != "base_latency")


def free_parameters(config: ClusterConfig, curves: Iterable[Curve]) -> Parameters:
    """The default choice for some curves."""
    cluster = build_cluster(config)
    curves = tuple(curves)
    reached = [[extent.tier for extent in span(cluster, curve.ranks)] for curve in curves]
    spanned = {tier.name for tiers in reached for tier in tiers if tier.protocols}
    names = [tier.name for tier in cluster.tiers if tier.name in spanned]
    found: dict[tuple[str, ...], Parameter] = {}
    for curve, tiers in zip(curves, reached, strict=True):
        for tier in tiers:
            _add(found, config, (f"tiers.{tier.name}.link.bandwidth",))
            if not tier.protocols:
                _add(found, config, (f"tiers.{tier.name}.link.latency",))
        families: list[Family] = list(dict.fromkeys(family(name) for name in curve.algorithms))
        for of in families:
            for protocol in protocols(tuple(tiers), of):
                if protocol is not None and curve.protocol in ("auto", protocol):
                    own = [tier.name for tier in tiers if tier.protocols]
                    _add_table(found, config, of, protocol, names, own)
    return Parameters(tuple(found.values()))


def uncorrected(config: ClusterConfig) -> ClusterConfig:
    """The cluster without factors on the bandwidth by size."""
    found = {}
    for tier in config.tiers:
        for protocol in tier.link.protocols or ():
            for key in ("ring", "tree", "in_network"):
                own = getattr(protocol, key)
                if own is not None and own.correction is not None:
                    found[f"tiers.{tier.name}.link.protocols.{protocol.name}.{key}.correction"] = None
    return with_figures(config, found)


def _add_table(
    found: dict[tuple[str, ...], Parameter],
    config: ClusterConfig,
    of: Family,
    protocol: str,
    all_tiers: list[str],
    tiers: list[str],
) -> None:
    below = f"link.protocols.{protocol}.{of.replace('-', '_')}"
    if of != "in-network":
        _add(found, config, tuple(f"tiers.{name}.{below}.base_latency" for name in all_tiers))
    for name in tiers:
        for key in _OF_A_TIER:
            _add(found, config, (f"tiers.{name}.{below}.{key}",))
        if of == "in-network":
            _add(found, config, (f"tiers.{name}.{below}.base_latency",))
            _add(found, config, (f"tiers.{name}.hop_latency",))


def _add(found: dict[tuple[str, ...], Parameter], config: ClusterConfig, paths: tuple[str, ...]) -> None:
    """Adds what is stated and not zero: a limit that nobody states is none."""
    stated = tuple(path for path in paths if _stated(config, path))
    if stated and stated not in found:
        found[stated] = parameter_at(config, stated)


def _stated(config: ClusterConfig, path: str) -> bool:
    try:
        return figure_at(config, path) > 0
    except PathError:
        return False
