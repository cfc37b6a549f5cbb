"""Incast: many senders, one receiver.

All bytes for a receiver pass its port one after the other; that is bandwidth, and the closed forms and the executor
count it. What comes on top depends on the network. With credits or pause frames senders are held back and nothing is
lost. Without, s senders with a window of w bytes under way each meet a port that can hold b: of s·w bytes at most b
fit, so the share

    1 − b / (s·w)        (0 while they fit)

overflows in the first round trips, and a part of that is sent again. The factor on the transfer is

    1 + penalty · max(0, 1 − b / (s·w)),

one as long as the buffer holds, rising with the senders, and never above 1 + penalty. That a fixed number of senders
fits, and that goodput falls beyond it, is measured (Phanishayee et al., FAST 2008; Chen et al., WREN 2009, whose model
has the same b / (s·w)). The form between the two ends is ours, and so is any figure for the penalty: an
estimate, to be fitted to measurements of the network at hand.

References:
    A. Phanishayee et al., "Measurement and Analysis of TCP Throughput Collapse in Cluster-based Storage
    Systems", FAST 2008.
    Y. Chen, R. Griffith, J. Liu, R. H. Katz, A. D. Joseph, "Understanding TCP Incast Throughput Collapse in Datacenter
    Networks", WREN 2009.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mc.delays.checks import scalar


class Incast(eqx.Module):
    """What a receiver's port can take.

    Attributes:
        buffer: bytes that the port holds, b.
        window: bytes that one sender has under way, w.
        penalty: share of the overflowing bytes' transfer time that is paid once more; 0 with credits.
    """

    buffer: Float[Array, ""] = eqx.field(converter=scalar("buffer", minimum=0.0, open_minimum=True))
    window: Float[Array, ""] = eqx.field(converter=scalar("window", minimum=0.0, open_minimum=True))
    penalty: Float[Array, ""] = eqx.field(converter=scalar("penalty", minimum=0.0))

    def factor(self, senders: ArrayLike) -> Float[Array, "..."]:
        """Factor on the transfer time of a receiver to which so many send at once (any shape)."""
        offered = jnp.maximum(jnp.asarray(senders, jnp.result_type(float)), 1.0) * self.window
        return 1 + self.penalty * jnp.maximum(0.0, 1 - self.buffer / offered)


def simultaneous_senders(algorithm: str, ranks: int) -> int:
    """How many ranks send to one at a time in an all-to-all: all others if it is direct, one if it goes by rounds."""
    return max(1, ranks - 1) if algorithm == "direct" else 1
