"""What a builder may be asked for; checked by `registry.py` before it gets there."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What the builder of one flat schedule looks at.

    Attributes:
        ranks: n, at least 1.
        radix: k of k-ary and in-network trees, at least 2; one per tier, the last for all further ones.
        pieces: that pipelined algorithms cut the buffer (or each tree's half of it) into.
        units: peers per tier of an in-network tree, innermost first, or the sides of a torus.
    """

    ranks: int
    radix: tuple[int, ...] = (4,)
    pieces: int = 16
    units: tuple[int, ...] = ()

    def radix_of(self, tier: int) -> int:
        """The radix of a tier."""
        return self.radix[min(tier, len(self.radix) - 1)]
