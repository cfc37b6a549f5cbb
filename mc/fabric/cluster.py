"""A cluster is a nest of tiers, innermost first: each joins `fan_out` units of the tier below it.

Ranks are numbered so that consecutive ranks share inner tiers: with fan-outs (8, 32, 4), ranks 0–7 are one
unit of the first tier, ranks 0–255 one unit of the second, and the cluster has 1024.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.delays.checks import scalar
from mc.errors import InputError
from mc.fabric.link import Link


class FabricError(InputError):
    """A tier, a cluster or a group of ranks cannot be."""


class Tier(eqx.Module):
    """One level of the interconnect.

    Attributes:
        name: unique in its cluster.
        link: what one rank has at this tier.
        fan_out: how many units of the tier below are joined, at least 1.
        hop_latency: seconds per switch hop, for in-network algorithms; the link's latency if left out.
        reduction_radix: how many inputs the tier's switches combine, at least 2; None if they do not reduce.
    """

    name: str = eqx.field(static=True)
    link: Link
    fan_out: int = eqx.field(static=True)
    hop_latency: Float[Array, ""] = eqx.field(converter=scalar("hop_latency", minimum=0.0))
    reduction_radix: int | None = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        link: Link,
        fan_out: int,
        *,
        hop_latency: Any = None,
        reduction_radix: int | None = None,
    ):
        self.name = name
        self.link = link
        self.fan_out = fan_out
        self.hop_latency = link.latency if hop_latency is None else hop_latency
        self.reduction_radix = reduction_radix

    def __check_init__(self):
        """Whole numbers in their ranges."""
        if not _is_whole(self.fan_out) or self.fan_out < 1:
            raise FabricError(
                f"tier `{self.name}`: fan_out: expected a whole number of at least 1; got {self.fan_out!r}"
            )
        radix = self.reduction_radix
        if radix is not None and (not _is_whole(radix) or radix < 2):
            raise FabricError(
                f"tier `{self.name}`: reduction_radix: "
                f"expected a whole number of at least 2, or None; got {radix!r}"
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

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return math.prod(tier.fan_out for tier in self.tiers)

    @property
    def size_text(self) -> str:
        """The size with its arithmetic: `8 x 32 x 4 = 1024`."""
        factors = " x ".join(str(tier.fan_out) for tier in self.tiers)
        return f"{factors} = {self.size}" if len(self.tiers) > 1 else factors


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def smallest_bandwidth(tiers: tuple[Tier, ...]) -> Float[Array, ""]:
    """The least bandwidth per rank among tiers, bytes/s."""
    least = tiers[0].link.bandwidth
    for tier in tiers[1:]:
        least = jnp.minimum(least, tier.link.bandwidth)
    return least
