"""Groups of ranks that exchange with each other.

Ranks are numbered through the dimensions, so a group is all ranks that differ in the digits of some of them only. Each
run of neighbouring digits is an *axis*: so many ranks, a stride apart. Most groups have one axis. One has two where
another dimension lies between its parts, as the replicas of dp and cp have under the order tp, cp, pp, dp.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# How many ranks, and how far apart.
Axis = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """Ranks of one group; all groups of a kind lie alike.

    Attributes:
        name: what they share, or which dimension they differ in.
        axes: innermost first; none for a group of one.
    """

    name: str
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """How many ranks."""
        return math.prod(size for size, _ in self.axes)

    @property
    def stride(self) -> int:
        """How far apart neighbours are, along the innermost axis."""
        return self.axes[0][1] if self.axes else 1


def joined(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes, innermost first, with neighbours made one where one goes on where the other ends."""
    found: list[Axis] = []
    for size, stride in axes:
        if size == 1:
            continue
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * size, found[-1][1])
        else:
            found.append((size, stride))
    return tuple(found)


def cut(axes: tuple[Axis, ...], skip: int, take: int) -> tuple[Axis, ...] | None:
    """A part of the ranks of joined axes: of their running number n, the digit (n // skip) % take.

    None if that is no product of axes: 6 of 4 x 4 ranks are none.
    """
    if take == 1:
        return ()
    found: list[Axis] = []
    for size, stride in axes:
        if skip > 1:
            if skip >= size:
                if skip % size:
                    return None
                skip //= size
                continue
            if size % skip:
                return None
            size, stride, skip = size // skip, stride * skip, 1
        if take == 1:
            break
        if max(size, take) % min(size, take):
            return None
        found.append((min(size, take), stride))
        take = max(take // size, 1)
    return joined(found) if skip == take == 1 else None
