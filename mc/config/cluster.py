"""The cluster file: a chip, the tiers that join its copies, and what makes copies differ."""

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator

from mc.config.checks import repeats
from mc.config.congestion import CongestionConfig, Name
from mc.config.delay import RatioDelay, TimeDelay
from mc.config.hardware import Chip, Link
from mc.config.names import SchemaVersion
from mc.config.quantities import PositiveRatio, Probability, Slowdown, Time
from mc.document import StrictModel, did_you_mean, located

# Who may share a link state beside the units of a tier.
EVERY_RANK_ALONE = "rank"
ALL_RANKS = "all"


class TierConfig(StrictModel):
    """One level of the interconnect.

    Attributes:
        name: unique in its cluster.
        link: what joins the units.
        fan_out: how many units of the tier below are joined.
        links_per_rank: links of this tier that one chip has to itself.
        oversubscription: divides the bandwidth a rank gets.
        reduction_radix: how many inputs the tier's switches combine; None if they do not reduce.
        hop_latency: seconds per switch hop, for in-network algorithms; the link's latency if left out.
        jitter: added to each message of a rank, seconds.
        congestion: random link states.
    """

    name: Name
    link: Link
    fan_out: Annotated[int, Field(ge=1)]
    links_per_rank: PositiveRatio = 1.0
    oversubscription: Slowdown = 1.0
    reduction_radix: Annotated[int, Field(ge=2)] | None = None
    hop_latency: Time = Field(default_factory=lambda data: data["link"].latency)
    jitter: TimeDelay | None = None
    congestion: CongestionConfig | None = None

    @property
    def bandwidth_per_rank(self) -> float:
        """Bytes/s in one direction that one rank gets at this tier."""
        return self.link.bandwidth_per_direction * self.links_per_rank / self.oversubscription


class PausesConfig(StrictModel):
    """Rare pauses: in a step, each rank pauses with `probability` for `delay` seconds."""

    probability: Probability
    delay: TimeDelay


class SlowChipsConfig(StrictModel):
    """Persistently slow chips, drawn once per realisation of the cluster.

    A `fraction` of the chips computes `slowdown` times longer.
    """

    fraction: Probability
    slowdown: Slowdown


class NoiseConfig(StrictModel):
    """What makes one chip slower than another.

    Attributes:
        jitter: added to a rank's compute time, seconds.
        spread: multiplies a rank's compute time.
        pauses: rare pauses.
        slow_chips: persistently slow chips.
    """

    jitter: TimeDelay | None = None
    spread: RatioDelay | None = None
    pauses: PausesConfig | None = None
    slow_chips: SlowChipsConfig | None = None


class ClusterConfig(StrictModel):
    """A cluster; `tiers` come innermost first."""

    schema_version: SchemaVersion = 1
    name: Name
    chip: Chip
    tiers: Annotated[tuple[TierConfig, ...], Field(strict=False, min_length=1)]
    noise: NoiseConfig = NoiseConfig()

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return math.prod(tier.fan_out for tier in self.tiers)

    @property
    def size_text(self) -> str:
        """The size with its arithmetic: "8 x 32 x 4 = 1024"."""
        factors = " x ".join(str(tier.fan_out) for tier in self.tiers)
        return f"{factors} = {self.size}" if len(self.tiers) > 1 else factors

    @model_validator(mode="after")
    def _check_tiers(self) -> "ClusterConfig":
        found = [*_names_taken(self.tiers), *_joining_nothing(self.tiers), *_shared_by_strangers(self.tiers)]
        if found:
            raise located("ClusterConfig", found)
        return self


_Found = Iterator[tuple[tuple[str | int, ...], str]]


def _names_taken(tiers: tuple[TierConfig, ...]) -> _Found:
    for index in repeats([tier.name for tier in tiers]):
        yield ("tiers", index, "name"), f"expected another name; `{tiers[index].name}` is taken already"
    for index, tier in enumerate(tiers):
        if tier.name in (EVERY_RANK_ALONE, ALL_RANKS):
            yield (
                ("tiers", index, "name"),
                f"expected another name; `{tier.name}` has a meaning in `shared_by`",
            )


def _joining_nothing(tiers: tuple[TierConfig, ...]) -> _Found:
    for index, tier in enumerate(tiers):
        if tier.fan_out == 1 and len(tiers) > 1:
            yield (
                ("tiers", index, "fan_out"),
                "expected 2 or more, since a tier of one unit joins nothing; got 1",
            )


def _shared_by_strangers(tiers: tuple[TierConfig, ...]) -> _Found:
    names = [tier.name for tier in tiers]
    for index, tier in enumerate(tiers):
        if tier.congestion is None:
            continue
        shared_by, path = tier.congestion.shared_by, ("tiers", index, "congestion", "shared_by")
        inner = [EVERY_RANK_ALONE, *names[: index + 1], ALL_RANKS]
        if shared_by in inner:
            continue
        if shared_by in names:
            stranger = f"`{shared_by}` lies outside of `{tier.name}`"
            yield path, f"expected this or an inner tier, `rank` or `all`; {stranger}"
        else:
            yield path, f"unknown tier `{shared_by}`; {did_you_mean(shared_by, inner)}"
