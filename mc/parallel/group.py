"""Groups of ranks that exchange with each other."""

from dataclasses import dataclass

from mc.config.axes import Axes, count


@dataclass(frozen=True)
class Group:
    """Ranks of one group; all groups of a kind lie alike.

    Attributes:
        name: which dimension its ranks differ in, or what they share.
        axes: where its ranks are (`mc.config.axes`), innermost first; none for a group of one.
    """

    name: str
    axes: Axes

    @property
    def size(self) -> int:
        """How many ranks."""
        return count(self.axes)

    @property
    def stride(self) -> int:
        """How far apart neighbours are, along the innermost axis."""
        return self.axes[0][1] if self.axes else 1

    def __str__(self) -> str:
        """Ranks and strides: `8`, `16 x 8` for 16 ranks that are 8 apart."""
        return (
            " + ".join(f"{size}" if stride == 1 else f"{size} by {stride}" for size, stride in self.axes)
            or "1"
        )
