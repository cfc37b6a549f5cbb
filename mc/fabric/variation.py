"""Links of some units that are not like the others of their tier: a slow rack, an older generation.

Which units is structure; by how much are numbers that may be traced.
"""

import equinox as eqx
from jaxtyping import Array, Float

from mc.delays.checks import scalar

# Index of a tier that stands for single ranks.
RANK = -1


class Variation(eqx.Module):
    """How the links that some ranks have at a tier differ from the tier's.

    Attributes:
        units: which units, counted through the whole cluster from 0.
        of: index of the tier whose units they are, no further out than the tier that varies; −1 for ranks.
        latency_factor: on the latency of a message and of a switch's hop.
        bandwidth_factor: on the bandwidth of a rank, above zero.
    """

    units: tuple[int, ...] = eqx.field(static=True, converter=tuple)
    of: int = eqx.field(static=True)
    latency_factor: Float[Array, ""] = eqx.field(converter=scalar("latency_factor", minimum=0.0), default=1.0)
    bandwidth_factor: Float[Array, ""] = eqx.field(
        converter=scalar("bandwidth_factor", minimum=0.0, open_minimum=True), default=1.0
    )
