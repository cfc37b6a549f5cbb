"""From an experiment that serves to its steps, without noise, and to what disturbs them."""

from dataclasses import replace

import numpy as np
from jaxtyping import PRNGKeyArray

from mc.config import ExperimentConfig
from mc.delays import build_delay
from mc.experiment.training_noise import noise_of_ranks, persistent_factors
from mc.fabric import build_cluster, shared_links, units_of
from mc.inference import (
    Disturbances,
    DisturbedLinks,
    Fabric,
    Layout,
    Server,
    ServingError,
    SharedNoise,
    build_server,
)
from mc.parallel.routing_choice import Choice
from mc.training import LoadLaw, Lockstep, Routing, build_chip, build_prices, load_law
from mc.transformer import MOE, Transformer, build_transformer


def server_of(config: ExperimentConfig) -> Server:
    """What an experiment that serves describes, without noise.

    Raises:
        InputError: it cannot be, or does not fit into memory.
    """
    assert config.model.transformer is not None
    assert config.serving is not None
    wanted = config.serving.ranks + (config.serving.prefill.ranks if config.serving.prefill else 0)
    if len(config.cluster.chips(wanted)) > 1:
        raise ServingError("cluster: expected chips that are all alike to serve on; got several kinds")
    # Blocks that predict further tokens are what guesses are made with: their time is `speculation.draft`.
    shape = replace(build_transformer(config.model.transformer), mtp_layers=0)
    ranks = [each.ranks for each in (config.serving, config.serving.prefill or config.serving)]
    fabrics = {count: _fabric(config, config.serving.protocol, count) for count in ranks}
    return build_server(config, shape, build_chip(config.cluster.chip), [fabrics[count] for count in ranks])


def _fabric(config: ExperimentConfig, protocol: str, ranks: int) -> Fabric:
    """The part of the cluster that a replica is in: it begins a node, and no other reaches into its tiers.

    The whole cluster would be full of replicas side by side, some of which lie across a border that this one does not.
    """
    tiers, left = [], ranks
    for tier in config.cluster.tiers:
        is_cut = tier.shape is None and tier.exceptions is None
        tiers.append(tier.model_copy(update={"fan_out": min(tier.fan_out, left)}) if is_cut else tier)
        left = -(-left // tier.fan_out)
    cluster = build_cluster(config.cluster.model_copy(update={"tiers": tuple(tiers)}))
    prices, plain = (build_prices(cluster, each) for each in (protocol, "none"))
    return Fabric(prices, plain, tiers[0].fan_out)


def disturbances(
    config: ExperimentConfig,
    server: Server,
    layout: Layout,
    tokens: float,
    key: PRNGKeyArray,
    realisations: int,
) -> Disturbances:
    """What disturbs the passes of a layout.

    Args:
        config: the experiment.
        server: what it describes.
        layout: of the ranks.
        tokens: of a pass, on all ranks of a stage.
        key: of what persists.
        realisations: how many clusters.
    """
    ranks, cluster = layout.ranks, config.cluster
    together = Lockstep(np.arange(ranks).reshape(layout.pp, 1, layout.stage_ranks))
    assert config.serving is not None
    # Ranks are counted by what the experiment says of the ranks that decode.
    sizes = {"tp": layout.tp, "dp": layout.dp, "pp": layout.pp, "ep": layout.ep}
    placed = config.model_copy(update={"serving": config.serving.model_copy(update=sizes)})
    factor = persistent_factors(placed, together, key, realisations)[:, :, 0, :]
    tiers = tuple(
        DisturbedLinks(
            index,
            None if tier.jitter is None else build_delay(tier.jitter),
            shared_links(cluster, index, ranks),
        )
        for index, tier in enumerate(cluster.tiers)
        if tier.jitter is not None or tier.congestion is not None
    )
    shared = []
    for entry in cluster.noise.transient or ():
        units = together.units(units_of(cluster, entry.scope, ranks))
        seconds = [] if entry.jitter is None else [(build_delay(entry.jitter), 1.0)]
        if entry.pauses is not None and entry.pauses.probability > 0:
            seconds.append((build_delay(entry.pauses.delay), entry.pauses.probability))
        spread = None if entry.spread is None else build_delay(entry.spread)
        shared.append(SharedNoise(units.shape[2], spread, tuple(seconds)))
    return Disturbances(
        noise_of_ranks(cluster.noise), factor, tuple(shared), _loads(server, layout, tokens), tiers
    )


def _loads(server: Server, layout: Layout, tokens: float) -> tuple[LoadLaw | None, ...]:
    """The law of the load of each stage's experts; none where all ranks have the same."""
    shape, given = server.shape, server.serving.routing
    if shape.experts is None or layout.ep == 1:
        return ()
    counts = [_with_experts(shape, layers) for layers in layout.stages(shape)]
    experts = shape.experts
    choice = Choice(experts.count, experts.top_k, experts.groups, experts.group_limit)
    if layout.copies:
        # Copies are experts of their own to tokens, which lie anywhere.
        choice = Choice(experts.count + layout.copies, experts.top_k)
    routing = Routing(
        choice,
        layout.ep,
        max(round(tokens), 1),
        given.skew,
        given.capacity_factor,
        given.overflow == "drop" and given.capacity_factor is not None,
    )
    return tuple(load_law(routing, count) if count else None for count in counts)


def _with_experts(shape: Transformer, layers: tuple[int, ...]) -> int:
    return sum(shape.layer_kinds[index] == MOE for index in layers)
