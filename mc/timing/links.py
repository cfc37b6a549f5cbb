"""What messages meet on their way: per tier a latency, a bandwidth and what is random about them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mc.delays import AbstractDelay
from mc.delays.checks import ParameterError, is_known, scalar


def _per_tier(name: str, *, above_zero: bool) -> Callable[[Any], Float[Array, " tiers"]]:
    convert = scalar(name, minimum=0.0, open_minimum=above_zero)
    return lambda value: jnp.atleast_1d(convert(value))


class Links(eqx.Module):
    """The links of a cluster as messages see them; numbers may be traced.

    Attributes:
        latency: seconds per message and tier, innermost first.
        bandwidth: bytes/s in one direction of one rank, per tier.
        jitter: per tier, added to each message, seconds; None for none.
        base: seconds that the collective takes before its first message.
        reduction_time_per_byte: γ, seconds to combine one byte with another.
    """

    latency: Float[Array, " tiers"] = eqx.field(converter=_per_tier("latency", above_zero=False))
    bandwidth: Float[Array, " tiers"] = eqx.field(converter=_per_tier("bandwidth", above_zero=True))
    jitter: tuple[AbstractDelay | None, ...] = (None,)
    base: Float[Array, ""] = eqx.field(converter=scalar("base", minimum=0.0), default=0.0)
    reduction_time_per_byte: Float[Array, ""] = eqx.field(
        converter=scalar("reduction_time_per_byte", minimum=0.0), default=0.0
    )

    def __check_init__(self):
        """As many entries for each tier."""
        counts = {self.latency.shape[-1], self.bandwidth.shape[-1], len(self.jitter)}
        if len(counts) > 1 and is_known(self.latency):
            raise ParameterError(
                "links: expected a latency, a bandwidth and a jitter (or None) for each tier; got "
                f"{self.latency.shape[-1]}, {self.bandwidth.shape[-1]} and {len(self.jitter)}"
            )

    @property
    def tiers(self) -> int:
        """How many tiers there are."""
        return len(self.jitter)


class Disturbance(eqx.Module):
    """What shared link states do to messages, drawn beforehand.

    Attributes:
        group: the group of each rank, per tier.
        slowdown: factor on the time that bytes take, for each group and sample.
        delay: seconds each message waits longer, likewise.
    """

    group: tuple[Int[Array, " ranks"], ...]
    slowdown: tuple[Float[Array, "groups samples"], ...]
    delay: tuple[Float[Array, "groups samples"], ...]
