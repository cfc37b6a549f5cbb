"""A link as the α–β model sees it: a message of m bytes takes α + m/bandwidth (Hockney 1994)."""

import equinox as eqx
from jaxtyping import Array, Float

from mc.delays.checks import scalar


class Link(eqx.Module):
    """What carries the messages of one rank.

    Attributes:
        latency: α, seconds from sender to receiver for a message of no size.
        bandwidth: bytes/s in one direction, of one rank; both directions at once.

    Raises:
        ParameterError: a value is not finite, negative, or a bandwidth of zero.
    """

    latency: Float[Array, ""] = eqx.field(converter=scalar("latency", minimum=0.0))
    bandwidth: Float[Array, ""] = eqx.field(converter=scalar("bandwidth", minimum=0.0, open_minimum=True))
