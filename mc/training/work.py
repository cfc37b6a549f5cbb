"""What sampled pipelines are made of: seconds of operations, what disturbs them, what stays for a realisation.

Tables of operations have a leading axis of *mixes*, the sets of kinds of chips that groups have
(`mc.training.generations`); of one where all chips are alike.
"""

from typing import Literal

import equinox as eqx
from jaxtyping import Array, Float, Int

from mc.delays import AbstractDelay
from mc.training.lateness import Lateness
from mc.training.slowness import RankNoise, SlownessCurve
from mc.training.tables import QuantileTable
from mc.training.unit_noise import UnitNoise

Sampling = Literal["exact", "direct"]


class Work(eqx.Module):
    """Seconds of one operation by mix, kind, stage and chunk, in the order of `mc.pipeline.Kind`.

    Attributes:
        plain: computes whatever the experts get.
        routed: computes with the tokens of its experts, at their mean load.
        attention: what computing in documents of full length would take beside.
        waiting: for messages, whatever the experts get.
        routing: for messages to and from experts, at their mean load.
        host: beyond that.
        crossing: per disturbed tier, the part of `waiting` and of `routing` whose bytes cross it, [tiers, 2, ...].
        messages: per disturbed tier, how many messages that ranks wait for cross it one after the other.
        group: class of the operation in the table of slowness.
        layers: class of the operation in the tables of load.
        mix: of each group; None where all chips are alike.
    """

    plain: Float[Array, "mixes kinds stages chunks"]
    routed: Float[Array, "mixes kinds stages chunks"]
    attention: Float[Array, "mixes kinds stages chunks"]
    waiting: Float[Array, "mixes kinds stages chunks"]
    routing: Float[Array, "mixes kinds stages chunks"]
    host: Float[Array, "mixes kinds stages chunks"]
    crossing: Float[Array, "tiers 2 mixes kinds stages chunks"]
    messages: Int[Array, "tiers mixes kinds stages chunks"]
    group: Int[Array, "mixes kinds stages chunks"]
    layers: Int[Array, "stages chunks"]
    mix: Int[Array, "stages replicas"] | None = None


class Sent(eqx.Module):
    """Messages between stages.

    Attributes:
        seconds: of a message forward and back, with idle links, [2].
        crossing: per disturbed tier, the part of that whose bytes cross it, [tiers, 2].
        messages: per disturbed tier, how many cross it one after the other.
        blocking: whether the sender waits.
    """

    seconds: Float[Array, "2"]
    crossing: Float[Array, "tiers 2"]
    messages: tuple[int, ...] = eqx.field(static=True)
    blocking: bool = eqx.field(static=True)


class Noise(eqx.Module):
    """All that disturbs operations.

    Attributes:
        rank: of each rank, for operations of each class.
        table: of the slowest rank; None where nothing of a rank is random.
        curve: that stands in for it; None where it does not.
        seconds: that operations of each class compute.
        stretches: in which they do, between two waits for each other.
        ratio: how long each kind of chip computes, over the slowest in the group, [classes, kinds of chips]; None where
            all are alike.
        chip: kind of each rank, [stages, replicas, ranks]; None where all are alike.
        units: shared.
        load: transient load by class; empty without experts.
        documents: attention work of a micro-batch, over that of full length; None where it is always the same.
        mean_attention: its mean, which is in `Work.plain`.
        late: messages on each disturbed tier; None for a tier that has link states of fixed delay alone.
    """

    rank: RankNoise
    table: QuantileTable | None
    seconds: Float[Array, " classes"]
    stretches: Int[Array, " classes"]
    curve: SlownessCurve | None = None
    ratio: Float[Array, "classes chips"] | None = None
    chip: Int[Array, "stages replicas ranks"] | None = None
    units: tuple[UnitNoise, ...] = ()
    load: tuple[AbstractDelay, ...] = ()
    documents: AbstractDelay | None = None
    mean_attention: float = eqx.field(static=True, default=1.0)
    late: tuple[Lateness | None, ...] = ()


class LinksNow(eqx.Module):
    """The states of links in the steps that are drawn, where each group meets them at their worst.

    Attributes:
        stretch: per disturbed tier, factor on transfers.
        delay: likewise, seconds that each message waits.
        state: likewise, which state has the law of what it waits beside.
    """

    stretch: Float[Array, "tiers stages replicas samples"]
    delay: Float[Array, "tiers stages replicas samples"]
    state: Int[Array, "tiers stages replicas samples"]


class Realisation(eqx.Module):
    """What stays during the steps of one realisation, and the link states of the steps that are drawn.

    Attributes:
        profile: which combination of persistent factors each group has, [stages, replicas]; for `exact`.
        factor: the persistent factor of each rank, [stages, replicas, ranks]; for `direct`.
        load: persistent load of each part.
        links: None for links that disturb nothing.
    """

    profile: Int[Array, "stages replicas"]
    factor: Float[Array, "stages replicas ranks"]
    load: Float[Array, "stages chunks"]
    links: LinksNow | None = None
