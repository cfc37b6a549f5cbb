"""The protocol table of a link: several ways to send over it, each a straight line of its own.

Communication libraries trade latency for bandwidth: NCCL's LL sends a flag with every 4 bytes and waits for
nothing, LL128 one with every 120, Simple fences large slices (S. Jeaugey, GTC 2019; the constants are in
NCCL's src/graph/tuning.cc). The fastest at each size is what a user sees, so a link is the lower envelope of
its protocols. Numbers hold for all families of algorithms unless a family has its own: NCCL pays 2.7 us for a
step of a ring and 5 us for one of a tree.
"""

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mc.config.checks import repeats
from mc.config.quantities import Bandwidth, PositiveRatio, PositiveSize, Probability, Slowdown, Time
from mc.document import StrictModel, located

Name = Annotated[str, Field(min_length=1)]
Family = Literal["ring", "tree", "in-network"]
FAMILIES: tuple[Family, ...] = ("ring", "tree", "in-network")
Efficiency = Annotated[Probability, Field(gt=0)]
# What `--protocol` and `plan.protocol` mean beside the names in a table.
AUTO, NONE, EVERY = "auto", "none", "all"


class CorrectionConfig(StrictModel):
    """Factors on the bandwidth by message size, as measured: one per doubling of the size.

    Attributes:
        first: the size that the first factor is for, bytes.
        factors: for this size, twice as much, and so on; 1 above the last, the first below.
    """

    first: PositiveSize
    factors: Annotated[tuple[PositiveRatio, ...], Field(strict=False, min_length=1)]


class PlateauConfig(StrictModel):
    """A factor on all latency of messages that are no longer tiny.

    Attributes:
        factor: on the latency.
        first: from so many bytes for each channel and rank on.
    """

    factor: Slowdown
    first: PositiveSize


class FamilyConfig(StrictModel):
    """What differs for one family of algorithms; what is left out is as for the protocol.

    Attributes:
        base_latency: seconds once per collective.
        hop_latency: seconds per hop.
        efficiency: part of the link's bandwidth that is reached.
        bandwidth_cap: bytes/s at most, of all that leaves one unit of the tier below.
        channel_bandwidth: bytes/s at most for each channel.
        channel_size: bytes that each channel carries at least: smaller messages use fewer channels.
        channel_size_per_rank: the same for each rank of the group; the larger of the two counts.
        inner_hop_latency: seconds that a hop on a tier further inside takes at least, once this tier is in
            the way.
        correction: factors on the bandwidth by size.
        plateau: a factor on the latency once this tier is in the way.
        hops: how many hops a tree makes on the tier: a chain from unit to unit, or a binary tree of them.
    """

    base_latency: Time | None = None
    hop_latency: Time | None = None
    efficiency: Efficiency | None = None
    bandwidth_cap: Bandwidth | None = None
    channel_bandwidth: Bandwidth | None = None
    channel_size: PositiveSize | None = None
    channel_size_per_rank: PositiveSize | None = None
    inner_hop_latency: Time | None = None
    correction: CorrectionConfig | None = None
    plateau: PlateauConfig | None = None
    hops: Literal["binary", "chain"] | None = None


class ProtocolConfig(StrictModel):
    """One way to send over a link.

    The bandwidth that is reached is the least of efficiency x link, the cap, and channels x channel bandwidth,
    times the part of the channels that a message is large enough for.

    Attributes:
        name: unique in the table; protocols of several tiers belong together by their names.
        base_latency: seconds once per collective: launch and hand-over.
        hop_latency: seconds per hop.
        efficiency: part of the link's bandwidth that is reached.
        bandwidth_cap: bytes/s at most, of all that leaves one unit of the tier below.
        channels: streams in parallel on one link.
        channel_bandwidth: bytes/s at most for each.
        channel_size: bytes that each carries at least: smaller messages use fewer channels.
        channel_size_per_rank: the same for each rank of the group; the larger of the two counts.
        serves: the families of algorithms that can use it; all if left out.
        sizes_from: bytes of a collective's buffer from which on it can be used; from any size on if left out. With
            `sizes_below` a link has one network for small messages and another for large ones.
        sizes_below: bytes up to which it can be used, these not included.
        ring: what differs for rings and other algorithms of neighbours and pairs.
        tree: what differs for trees.
        in_network: what differs for reduction in switches, whose hops take the tier's `hop_latency` unless
            stated here.
    """

    name: Name
    base_latency: Time = 0.0
    hop_latency: Time
    efficiency: Efficiency = 1.0
    bandwidth_cap: Bandwidth | None = None
    channels: Annotated[int, Field(ge=1)] = 1
    channel_bandwidth: Bandwidth | None = None
    channel_size: PositiveSize | None = None
    channel_size_per_rank: PositiveSize | None = None
    serves: Annotated[tuple[Family, ...], Field(strict=False, min_length=1)] = FAMILIES
    sizes_from: PositiveSize | None = None
    sizes_below: PositiveSize | None = None
    ring: FamilyConfig | None = None
    tree: FamilyConfig | None = None
    in_network: FamilyConfig | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "ProtocolConfig":
        found: list[tuple[tuple[str | int, ...], str]] = []
        if self.name in (AUTO, NONE, EVERY):
            found.append((("name",), f"expected another name; `{self.name}` has a meaning in `protocol`"))
        for index in repeats(self.serves):
            found.append((("serves", index), f"expected each family once; got `{self.serves[index]}` twice"))
        for key, family in (("ring", "ring"), ("tree", "tree"), ("in_network", "in-network")):
            own: FamilyConfig | None = getattr(self, key)
            if own is None:
                continue
            if family not in self.serves:
                found.append(((key,), f"expected `{family}` in `serves`, since its numbers are given"))
            if own.hops is not None and family != "tree":
                found.append(
                    ((key, "hops"), "expected for `tree` only: other hops follow from the algorithm")
                )
        first, end = self.sizes_from or 0.0, self.sizes_below or math.inf
        if not first < end:
            found.append((("sizes_below",), f"expected more than `sizes_from`, {first:g} bytes; got {end:g}"))
        if found:
            raise located("ProtocolConfig", found)
        return self

    def of(self, family: Family) -> FamilyConfig | None:
        """What a family pays, complete but for what nobody stated; None if the protocol does not serve it."""
        if family not in self.serves:
            return None
        own: FamilyConfig | None = getattr(self, family.replace("-", "_"))
        general = {
            "base_latency": self.base_latency,
            # Switches have a latency of their own.
            "hop_latency": None if family == "in-network" else self.hop_latency,
            "efficiency": self.efficiency,
            "bandwidth_cap": self.bandwidth_cap,
            "channel_bandwidth": self.channel_bandwidth,
            "channel_size": self.channel_size,
            "channel_size_per_rank": self.channel_size_per_rank,
        }
        stated = {} if own is None else {key: value for key, value in own if value is not None}
        return FamilyConfig.model_construct(**(general | stated))


def check_protocols(protocols: tuple[ProtocolConfig, ...]) -> list[tuple[tuple[str | int, ...], str]]:
    """Objections to a table: (path below the link, message)."""
    names = [each.name for each in protocols]
    found: list[tuple[tuple[str | int, ...], str]] = [
        (("protocols", index, "name"), f"expected another name; `{names[index]}` is taken already")
        for index in repeats(names)
    ]
    reached = 0.0
    for first, end in sorted((each.sizes_from or 0.0, each.sizes_below or math.inf) for each in protocols):
        if first > reached:
            break
        reached = max(reached, end)
    if protocols and reached < math.inf:
        text = f"expected a protocol for every size; got none from {reached:g} bytes on: see `sizes_from` and `sizes_below`"
        found.append((("protocols",), text))
    return found
