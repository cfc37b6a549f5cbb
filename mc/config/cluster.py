"""The cluster file: a chip, the tiers that join its copies, and what makes copies differ."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator

from mc.config import layout, uneven
from mc.config.checks import repeats
from mc.config.congestion import CongestionConfig, IncastConfig, Name
from mc.config.delay import TimeDelay
from mc.config.exceptions import ExceptionConfig
from mc.config.hardware import Chip, ChipConfig, Link
from mc.config.names import SchemaVersion
from mc.config.noise import NoiseConfig
from mc.config.posterior import PosteriorConfig, posterior_problems
from mc.config.quantities import PositiveRatio, PositiveSize, Slowdown, Time
from mc.config.shape import FullyConnectedConfig, ShapeConfig, TorusConfig
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
        shape: which links join them; None for switches.
        links_per_rank: links of this tier that one chip has to itself.
        oversubscription: divides the bandwidth a rank gets.
        reduction_radix: how many inputs the tier's switches combine; None if they do not reduce.
        reduction_buffer: bytes of one stream that the tier's switches can hold while they reduce it; None for
            no limit.
        hop_latency: seconds per switch hop, for in-network algorithms; the link's latency if left out.
        jitter: added to each message of a rank, seconds.
        congestion: random link states.
        incast: what many senders to one receiver cost.
        exceptions: units that differ.
    """

    name: Name
    link: Link
    fan_out: Annotated[int, Field(ge=1)]
    shape: ShapeConfig | None = None
    links_per_rank: PositiveRatio = 1.0
    oversubscription: Slowdown = 1.0
    reduction_radix: Annotated[int, Field(ge=2)] | None = None
    reduction_buffer: PositiveSize | None = None
    hop_latency: Time = Field(default_factory=lambda data: data["link"].latency)
    jitter: TimeDelay | None = None
    congestion: CongestionConfig | None = None
    incast: IncastConfig | None = None
    exceptions: Annotated[tuple[ExceptionConfig, ...], Field(strict=False, min_length=1)] | None = None

    @property
    def bandwidth_per_rank(self) -> float:
        """Bytes/s in one direction that one rank gets at this tier."""
        return self.link.bandwidth_per_direction * self.links_per_rank / self.oversubscription


class ClusterConfig(StrictModel):
    """A cluster.

    Attributes:
        name: for people.
        chip: what a rank is.
        tiers: of the interconnect, innermost first.
        noise: what makes one chip slower than another.
        posterior: how well figures are known, after a calibration.
    """

    schema_version: SchemaVersion = 1
    name: Name
    chip: Chip
    tiers: Annotated[tuple[TierConfig, ...], Field(strict=False, min_length=1)]
    noise: NoiseConfig = NoiseConfig()
    posterior: PosteriorConfig | None = None

    @property
    def fan_outs(self) -> tuple[layout.FanOut, ...]:
        """Per tier, its fan-out, or those of all its units where they differ."""
        return uneven.fan_outs([tier.fan_out for tier in self.tiers], _exceptions(self.tiers))

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return layout.size(self.fan_outs)

    @property
    def size_text(self) -> str:
        """The size with its arithmetic: "8 x 32 x 4 = 1024"; "7-8 x 32 = 255" where units differ."""
        return layout.size_text(self.fan_outs)

    def chips(self, ranks: int | None = None) -> list[tuple[int, ChipConfig, float]]:
        """The kinds of chips among the first `ranks` ranks, all by default.

        Returns:
            (how many, the chip, how many times longer they compute than it says).
        """
        return uneven.chips(self.chip, *self._placed(), self.size if ranks is None else ranks)

    def chip_runs(self, ranks: int) -> list[tuple[int, ChipConfig, float]]:
        """The chips of the first `ranks` ranks in their order: how many, and as `chips` has them."""
        return uneven.runs(self.chip, *self._placed(), ranks)

    def _placed(self) -> tuple[list[str], tuple[layout.FanOut, ...], list[tuple[ExceptionConfig, ...]]]:
        return [tier.name for tier in self.tiers], self.fan_outs, _exceptions(self.tiers)

    def classes(self, number_format: str | None = None, ranks: int | None = None) -> list[tuple[int, float]]:
        """How many of the first `ranks` ranks compute how many times faster than the cluster's chip.

        Args:
            number_format: in which they compute; None where a time is given instead, which is that of `chip`.
            ranks: all by default.

        Returns:
            (count, factor on the compute rate); counts add up to `ranks`. One pair, factor 1, if all are
            alike.

        Raises:
            InputError: chips differ and cannot be compared in this format.
        """
        return uneven.rates(self.chips(ranks), self.chip, number_format)

    @model_validator(mode="after")
    def _check_tiers(self) -> "ClusterConfig":
        found = [
            *_names_taken(self.tiers),
            *_joining_nothing(self.tiers),
            *_shared_by_strangers(self.tiers),
            *_full_links(self.tiers),
            *_misshapen(self.tiers),
            *_wrong_exceptions(self.tiers),
            *_unknown_scopes(self.tiers, self.noise),
        ]
        if not found and self.posterior is not None:
            problems = posterior_problems(self, self.posterior)
            found = [(("posterior", *path), text) for path, text in problems]
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


def _full_links(tiers: tuple[TierConfig, ...]) -> _Found:
    for index, tier in enumerate(tiers):
        for place, state in enumerate(() if tier.congestion is None else tier.congestion.states):
            taken = (state.load or 0.0) * tier.oversubscription
            if taken >= 1:
                yield (
                    ("tiers", index, "congestion", "states", place, "load"),
                    f"expected load x oversubscription below 1, since others would fill the link; got {taken:g}",
                )


def _unknown_scopes(tiers: tuple[TierConfig, ...], noise: NoiseConfig) -> _Found:
    names = [*(tier.name for tier in tiers), ALL_RANKS]
    for key, entries, known in (
        ("persistent", noise.persistent or (), [EVERY_RANK_ALONE, *names]),
        ("transient", noise.transient or (), names),
    ):
        for index, entry in enumerate(entries):
            path = ("noise", key, index, "scope")
            if entry.scope in known:
                continue
            if entry.scope == EVERY_RANK_ALONE:
                own = "a rank's own noise goes into `noise.spread`, `noise.jitter` and `noise.pauses`"
                yield path, f"expected a tier or `all`; {own}"
            else:
                yield path, f"unknown tier `{entry.scope}`; {did_you_mean(entry.scope, known)}"
    for index in repeats([entry.scope for entry in noise.transient or ()]):
        yield ("noise", "transient", index, "scope"), "expected each scope once; this one was given already"
    spreads = [index for index, entry in enumerate(noise.persistent or ()) if entry.spread is not None]
    for index in spreads[2:]:
        yield ("noise", "persistent", index, "spread"), "expected at most two persistent spreads"


def _exceptions(tiers: tuple[TierConfig, ...]) -> list[tuple[ExceptionConfig, ...]]:
    return [tier.exceptions or () for tier in tiers]


def _misshapen(tiers: tuple[TierConfig, ...]) -> _Found:
    for index, tier in enumerate(tiers):
        if tier.reduction_buffer is not None and tier.reduction_radix is None:
            yield (
                ("tiers", index, "reduction_buffer"),
                "expected a reduction_radix with it, since these switches do not reduce",
            )
        shape = tier.shape
        if shape is None:
            continue
        if shape.size is not None and shape.size != tier.fan_out:
            key = "dims" if isinstance(shape, TorusConfig) else "levels"
            yield (
                ("tiers", index, "shape", shape.kind, key),
                f"expected {key} that multiply to the fan_out, {tier.fan_out}; got {shape.size}",
            )
        if tier.reduction_radix is not None and isinstance(shape, FullyConnectedConfig | TorusConfig):
            yield (
                ("tiers", index, "reduction_radix"),
                f"expected none, since a {shape.kind} tier has no switches; got {tier.reduction_radix}",
            )
        for place, each in enumerate(tier.exceptions or ()):
            if shape.size is not None and each.fan_out is not None:
                yield (
                    ("tiers", index, "exceptions", place, "fan_out"),
                    f"expected none, since a {shape.kind} has all of its units; got {each.fan_out}",
                )


def _wrong_exceptions(tiers: tuple[TierConfig, ...]) -> _Found:
    return uneven.problems(
        [tier.name for tier in tiers],
        [tier.fan_out for tier in tiers],
        _exceptions(tiers),
        [tier.link.latency for tier in tiers],
    )
