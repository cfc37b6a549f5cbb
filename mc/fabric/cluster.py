"""A cluster is a nest of tiers, innermost first: each joins `fan_out` units of the tier below it.

Ranks are numbered so that consecutive ranks share inner tiers: with fan-outs (8, 32, 4), ranks 0–7 are one
unit of the first tier, ranks 0–255 one unit of the second, and the cluster has 1024. Units need not be alike:
a tier may list the fan-out of each, and say whose links differ.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.config.layout import FanOut, counts, size, size_text
from mc.delays.checks import scalar
from mc.errors import InputError
from mc.fabric.link import Link
from mc.fabric.protocol import Protocol
from mc.fabric.shape import Shape, Switched
from mc.fabric.variation import RANK, Variation


class FabricError(InputError):
    """A tier, a cluster or a group of ranks cannot be."""


_BUFFER = scalar("reduction_buffer", minimum=0.0, open_minimum=True)


class Tier(eqx.Module):
    """One level of the interconnect.

    Attributes:
        name: unique in its cluster.
        link: what one rank has at this tier.
        fan_out: how many units of the tier below are joined, at least 1; of the largest unit, if they differ.
        sizes: the fan-out of each unit through the whole cluster, where they differ; else None.
        shape: which links join them.
        variations: units whose links differ from `link`.
        hop_latency: seconds per switch hop, for in-network algorithms; the link's latency if left out.
        reduction_radix: how many inputs the tier's switches combine, at least 2; None if they do not reduce.
        reduction_buffer: bytes of one stream that a switch can hold while it reduces; None for no limit.
        protocols: the ways to send over the link, each name once; without any, the link is a line.
    """

    name: str = eqx.field(static=True)
    link: Link
    fan_out: int = eqx.field(static=True)
    sizes: tuple[int, ...] | None = eqx.field(static=True)
    hop_latency: Float[Array, ""] = eqx.field(converter=scalar("hop_latency", minimum=0.0))
    reduction_radix: int | None = eqx.field(static=True)
    reduction_buffer: Float[Array, ""] | None = eqx.field(
        converter=lambda value: None if value is None else _BUFFER(value)
    )
    protocols: tuple[Protocol, ...]
    shape: Shape = eqx.field(static=True)
    variations: tuple[Variation, ...]

    def __init__(
        self,
        name: str,
        link: Link,
        fan_out: int | Sequence[int],
        *,
        hop_latency: Any = None,
        reduction_radix: int | None = None,
        reduction_buffer: Any = None,
        protocols: tuple[Protocol, ...] = (),
        shape: Shape | None = None,
        variations: tuple[Variation, ...] = (),
    ):
        self.name = name
        self.link = link
        sizes = tuple(fan_out) if isinstance(fan_out, Sequence) else (fan_out,)
        for each in sizes or (0,):
            if not _is_whole(each) or each < 1:
                raise FabricError(
                    f"tier `{name}`: fan_out: expected a whole number of at least 1; got {each!r}"
                )
        self.fan_out = max(sizes)
        self.sizes = sizes if len(set(sizes)) > 1 else None
        self.hop_latency = link.latency if hop_latency is None else hop_latency
        self.reduction_radix = reduction_radix
        self.reduction_buffer = reduction_buffer
        self.protocols = protocols
        self.shape = Switched() if shape is None else shape
        self.variations = variations

    def __check_init__(self):
        """Whole numbers in their ranges, and a shape that fits."""
        radix = self.reduction_radix
        if radix is not None and (not _is_whole(radix) or radix < 2):
            raise FabricError(
                f"tier `{self.name}`: reduction_radix: "
                f"expected a whole number of at least 2, or None; got {radix!r}"
            )
        wanted = self.shape.size
        if wanted is not None and (wanted != self.fan_out or self.sizes is not None):
            found = self.fan_out if self.sizes is None else f"units of {min(self.sizes)} to {self.fan_out}"
            raise FabricError(
                f"tier `{self.name}`: shape: expected a fan_out of {wanted} as the shape has; got {found}"
            )
        if radix is not None and not self.shape.has_switches:
            raise FabricError(
                f"tier `{self.name}`: reduction_radix: expected None, since this shape has no switches; got {radix}"
            )
        named = [each.name for each in self.protocols]
        again = [name for index, name in enumerate(named) if name in named[:index]]
        if again:
            raise FabricError(
                f"tier `{self.name}`: expected protocols with names of their own; got `{again[0]}` twice"
            )


class Cluster(eqx.Module):
    """Ranks and the tiers that join them.

    Attributes:
        name: for people.
        tiers: innermost first, at least one.
        reduction_time_per_byte: γ, seconds a rank takes to combine one byte that arrived with one it has. The
            default 0 says that kernels combine as data arrive, at link speed, as NCCL's do.
    """

    name: str = eqx.field(static=True)
    tiers: tuple[Tier, ...]
    reduction_time_per_byte: Float[Array, ""] = eqx.field(
        converter=scalar("reduction_time_per_byte", minimum=0.0), default=0.0
    )

    def __check_init__(self):
        """At least one tier, each with its own name."""
        names = [tier.name for tier in self.tiers]
        if not names:
            raise FabricError(f"cluster `{self.name}`: expected at least one tier; got none")
        again = [name for index, name in enumerate(names) if name in names[:index]]
        if again:
            raise FabricError(
                f"cluster `{self.name}`: expected tiers with names of their own; got `{again[0]}` twice"
            )
        units = 1
        for tier, own in zip(reversed(self.tiers), reversed(self.fan_outs), strict=True):
            if not isinstance(own, int) and len(own) != units:
                raise FabricError(
                    f"tier `{tier.name}`: fan_out: expected one number, or one for each of its "
                    f"{units} units; got {len(own)}"
                )
            units = units * own if isinstance(own, int) else sum(own)
        numbers = (*counts(self.fan_outs),)
        for index, tier in enumerate(self.tiers):
            for each in tier.variations:
                _check_variation(tier.name, index, each, numbers)

    @property
    def fan_outs(self) -> tuple[FanOut, ...]:
        """Per tier, its fan-out, or those of all its units where they differ."""
        return tuple(tier.fan_out if tier.sizes is None else tier.sizes for tier in self.tiers)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return size(self.fan_outs)

    @property
    def size_text(self) -> str:
        """The size with its arithmetic: `8 x 32 x 4 = 1024`; units of several sizes as `7-8 x 32 = 255`."""
        return size_text(self.fan_outs)


def _check_variation(name: str, index: int, variation: Variation, numbers: tuple[int, ...]) -> None:
    if not RANK <= variation.of <= index:
        raise FabricError(
            f"tier `{name}`: variations: of: expected an index from {RANK} to {index}; got {variation.of}"
        )
    count = numbers[variation.of + 1]
    unknown = [each for each in variation.units if not (_is_whole(each) and 0 <= each < count)]
    if unknown or not variation.units:
        found = unknown[0] if unknown else "none"
        raise FabricError(
            f"tier `{name}`: variations: units: expected units from 0 to {count - 1}; got {found}"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def smallest_bandwidth(tiers: tuple[Tier, ...]) -> Float[Array, ""]:
    """The least bandwidth per rank among tiers, bytes/s."""
    least = tiers[0].link.bandwidth
    for tier in tiers[1:]:
        least = jnp.minimum(least, tier.link.bandwidth)
    return least
