"""An algorithm laid out for the links of one shape and one number of peers: its counts are plain numbers.

On switches an algorithm's counts are formulas in the number of ranks, which may be traced. On a torus or a
full mesh they depend on the extents, which are structure, so they are worked out once, here in Python.
"""

import equinox as eqx

from mc.collectives.base import AbstractAlgorithm
from mc.collectives.cost import Counts


class FixedAlgorithm(AbstractAlgorithm):
    """Counts for `peers` ranks; the meaning of each is that of `Counts`.

    `carried` is in terms of all of a rank's links together: a message of B on one of six links counts 6·B.

    Attributes:
        name: as users write it.
        collective: what it carries out.
        peers: for how many ranks.
        rounds: messages one after the other.
        sent: of the buffer, by a rank, the mean.
        carried: of the buffer, by the busiest link, times the links of a rank.
        combined: of the buffer, one after the other.
        hops: further links that messages pass, one after the other.
    """

    # An instance has its own names here, where other algorithms have those of their class.
    name: str = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    collective: str = eqx.field(static=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    peers: int = eqx.field(static=True)
    rounds: float = eqx.field(static=True)
    sent: float = eqx.field(static=True)
    carried: float = eqx.field(static=True)
    combined: float = eqx.field(static=True, default=0.0)
    hops: float = eqx.field(static=True, default=0.0)

    def counts(self, ranks, radix):
        """As they stand; `ranks` is `peers`."""
        del ranks, radix
        return Counts(self.rounds, self.sent, self.carried, self.combined, self.hops)
