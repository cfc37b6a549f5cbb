"""A protocol as the engine sees it: for each family of algorithms, a line and what bends it.

Which families there are is structure; every number is an array that may be traced, so one compiled program
serves every table of the same shape and can be differentiated in each of its entries.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mc.catalog import PROTOCOL_FIGURES
from mc.config import FamilyConfig, ProtocolConfig
from mc.config.protocol import Family
from mc.delays.checks import ParameterError, is_known, scalar


def _efficiency(value: Any) -> Float[Array, ""]:
    found = scalar("efficiency", minimum=0.0, open_minimum=True)(value)
    if is_known(found) and np.any(np.asarray(found) > 1):
        raise ParameterError(f"efficiency: expected a number <= 1; got {value}")
    return found


def _time(name: str) -> Any:
    return eqx.field(converter=scalar(name, minimum=0.0), default=0.0)


def _optional(name: str) -> Any:
    check = scalar(name, minimum=0.0, open_minimum=True)
    return eqx.field(converter=lambda value: None if value is None else check(value), default=None)


class Correction(eqx.Module):
    """Factors on the bandwidth by message size, one per doubling.

    Attributes:
        first: the size that the first factor is for, bytes.
        factors: for this size, twice as much, and so on.
    """

    first: Float[Array, ""] = eqx.field(converter=scalar("first", minimum=0.0, open_minimum=True))
    factors: Float[Array, " sizes"] = eqx.field(converter=scalar("factors", minimum=0.0, open_minimum=True))

    def at(self, size: ArrayLike) -> Float[Array, ""]:
        """The factor for a size: straight from entry to entry in log size, 1 from a doubling after the last."""
        known = jnp.append(self.factors, 1.0)
        place = jnp.log2(jnp.maximum(jnp.asarray(size, known.dtype), self.first) / self.first)
        return jnp.interp(place, jnp.arange(known.shape[0], dtype=known.dtype), known)


class Plateau(eqx.Module):
    """A factor on all latency of messages that are no longer tiny.

    Attributes:
        factor: on the latency, at least 1.
        first: from so many bytes for each channel and rank on.
    """

    factor: Float[Array, ""] = eqx.field(converter=scalar("factor", minimum=1.0))
    first: Float[Array, ""] = eqx.field(converter=scalar("first", minimum=0.0, open_minimum=True))


class Terms(eqx.Module):
    """What one family of algorithms pays on a tier under a protocol.

    Attributes:
        base_latency: seconds once per collective.
        hop_latency: seconds per hop; None for the latency that the tier states (of a switch's hop).
        inner_hop_latency: seconds that a hop on a tier further inside takes at least.
        efficiency: part of the link's bandwidth that is reached, above 0 and up to 1.
        bandwidth_cap: bytes/s at most, of all that leaves one unit of the tier below; None for no cap.
        channel_bandwidth: bytes/s at most for each channel; None for no cap.
        channel_size: bytes that each channel carries at least; None where every message uses all.
        channel_size_per_rank: the same for each rank of the group.
        correction: factors on the bandwidth by size; None for none.
        plateau: factor on the latency; None for none.
        chain: whether a tree is a chain on this tier.

    Raises:
        ParameterError: a value outside its range.
    """

    base_latency: Float[Array, ""] = _time("base_latency")
    hop_latency: Float[Array, ""] | None = eqx.field(
        converter=lambda value: None if value is None else scalar("hop_latency", minimum=0.0)(value),
        default=None,
    )
    inner_hop_latency: Float[Array, ""] = _time("inner_hop_latency")
    efficiency: Float[Array, ""] = eqx.field(converter=_efficiency, default=1.0)
    bandwidth_cap: Float[Array, ""] | None = _optional("bandwidth_cap")
    channel_bandwidth: Float[Array, ""] | None = _optional("channel_bandwidth")
    channel_size: Float[Array, ""] | None = _optional("channel_size")
    channel_size_per_rank: Float[Array, ""] | None = _optional("channel_size_per_rank")
    correction: Correction | None = None
    plateau: Plateau | None = None
    chain: bool = eqx.field(static=True, default=False)

    def bandwidth(self, links: ArrayLike, channels: ArrayLike) -> Float[Array, ""]:
        """What a stream reaches over links of this bandwidth together: the least of the three limits."""
        found = self.efficiency * jnp.asarray(links)
        if self.bandwidth_cap is not None:
            found = jnp.minimum(found, self.bandwidth_cap)
        if self.channel_bandwidth is not None:
            found = jnp.minimum(found, channels * self.channel_bandwidth)
        return found

    def part_of_channels(self, size: ArrayLike, ranks: ArrayLike, channels: ArrayLike) -> Float[Array, ""]:
        """How large a part of its channels a message of this size uses; at least one of them."""
        size = jnp.asarray(size)
        least = jnp.zeros((), size.dtype)
        if self.channel_size is not None:
            least = self.channel_size
        if self.channel_size_per_rank is not None:
            least = jnp.maximum(least, self.channel_size_per_rank * ranks)
        # Whole channels make steps; in between is the line through them, which has a slope.
        used = size / jnp.where(least > 0, least, 1.0)
        return jnp.where(least > 0, jnp.minimum(jnp.maximum(used, 1.0) / channels, 1.0), 1.0)


class Protocol(eqx.Module):
    """One way to send over a tier's links.

    Attributes:
        name: protocols of several tiers belong together by it.
        channels: streams in parallel for each rank; a fraction where ranks share a link.
        ring: what rings, and other algorithms of neighbours and pairs, pay; None if they cannot use it.
        tree: what trees pay.
        in_network: what reduction in switches pays.
        sizes_from: bytes of a collective's buffer from which on it can be used; None for any.
        sizes_below: bytes up to which it can.
    """

    name: str = eqx.field(static=True)
    channels: Float[Array, ""] = eqx.field(
        converter=scalar("channels", minimum=0.0, open_minimum=True), default=1.0
    )
    ring: Terms | None = None
    tree: Terms | None = None
    in_network: Terms | None = None
    sizes_from: Float[Array, ""] | None = _optional("sizes_from")
    sizes_below: Float[Array, ""] | None = _optional("sizes_below")

    def of(self, family: Family) -> Terms | None:
        """What a family pays; None if it cannot use the protocol."""
        return {"ring": self.ring, "tree": self.tree, "in-network": self.in_network}[family]

    @property
    def is_limited(self) -> bool:
        """Whether there are sizes that it cannot be used for."""
        return self.sizes_from is not None or self.sizes_below is not None

    def waits(self, size: Float[Array, ""]) -> Float[Array, ""]:
        """0 for a size that it can be used for, else infinity: another one is faster."""
        able = jnp.ones((), bool)
        if self.sizes_from is not None:
            able = able & (size >= self.sizes_from)
        if self.sizes_below is not None:
            able = able & (size < self.sizes_below)
        return jnp.where(able, 0.0, jnp.inf).astype(size.dtype)


def build_protocol(config: ProtocolConfig, links_per_rank: float = 1.0) -> Protocol:
    """The protocol of a configuration, with each family's numbers worked out; each link has its channels."""
    limits: dict[str, Any] = {"sizes_from": config.sizes_from, "sizes_below": config.sizes_below}
    return Protocol(
        config.name,
        config.channels * links_per_rank,
        ring=_terms(config.of("ring")),
        tree=_terms(config.of("tree")),
        in_network=_terms(config.of("in-network")),
        **limits,
    )


def _terms(config: FamilyConfig | None) -> Terms | None:
    if config is None:
        return None
    correction, plateau = config.correction, config.plateau
    # What nobody stated keeps the default of `Terms`.
    stated = {key: value for key, value in config if key in PROTOCOL_FIGURES and value is not None}
    return Terms(
        **stated,
        correction=None if correction is None else Correction(correction.first, correction.factors),
        plateau=None if plateau is None else Plateau(plateau.factor, plateau.first),
        chain=config.hops == "chain",
    )
