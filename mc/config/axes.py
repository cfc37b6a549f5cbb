"""Which ranks a group has, where ranks are numbered through several dimensions.

A group is all ranks that differ in the digits of some dimensions only. Each run of neighbouring digits is an
*axis*: so many ranks, a stride apart. Most groups have one axis; one has two where another dimension lies
between its parts, as the replicas over dp and cp under the order tp, cp, pp, dp.
"""

import math
from collections.abc import Iterable, Sequence

# How many ranks, and how far apart. A group has some, innermost first; none if it is one rank.
Axis = tuple[int, int]
Axes = tuple[Axis, ...]


def joined(axes: Iterable[Axis]) -> Axes:
    """Axes, innermost first, with two made one where one goes on where the other ends."""
    found: list[Axis] = []
    for size, stride in axes:
        if size == 1:
            continue
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * size, found[-1][1])
        else:
            found.append((size, stride))
    return tuple(found)


def cut(axes: Axes, skip: int, take: int) -> Axes | None:
    """A part of the ranks of joined axes: those that differ in the digit (n // skip) % take of their number n.

    None if these are no axes: 6 of 4 x 4 ranks that are not neighbours throughout.
    """
    found: list[Axis] = []
    for size, stride in axes:
        if take == 1:
            break
        if skip >= size:
            if skip % size:
                return None
            skip //= size
            continue
        if size % skip:
            return None
        size, stride, skip = size // skip, stride * skip, 1
        if max(size, take) % min(size, take):
            return None
        found.append((min(size, take), stride))
        take = max(take // size, 1)
    return joined(found) if take == 1 else None


def split_at(axes: Axes, border: int) -> tuple[Axes, Axes] | None:
    """A group's axes inside of units of so many ranks, and between them; None if units have different parts of it.

    Those between units join ranks in the same place of each.
    """
    end = max((size * stride for size, stride in axes), default=1)
    found = reach(axes, (border, border * -(-end // border)))
    if found is None:
        return None
    inside, between = found
    return inside, tuple((size, border * stride) for size, stride in between)


def axes_of(sizes: Iterable[tuple[str, int]], among: frozenset[str]) -> Axes:
    """The axes of the group that differs in the dimensions `among`.

    Args:
        sizes: every dimension with its size, innermost first.
        among: names of dimensions.
    """
    found, stride = [], 1
    for name, size in sizes:
        if name in among:
            found.append((size, stride))
        stride *= size
    return joined(found)


def count(axes: Axes) -> int:
    """How many ranks a group has."""
    return math.prod(size for size, _ in axes)


def reach(axes: Axes, borders: Sequence[int]) -> tuple[Axes, ...] | None:
    """Where a group's ranks lie among units that are alike.

    Args:
        axes: the group's.
        borders: how many ranks a unit has, per tier, outermost last; each divides the next.

    Returns:
        Per tier, the axes of the group within one of its units, counted in units of the tier below; none where it
        stays inside one of these. None if groups with these axes lie differently, as six ranks do in
        units of eight.
    """
    found: list[Axes] = []
    below = 1
    for border in borders:
        inside: list[Axis] = []
        for size, stride in axes:
            end = size * stride
            if end > border > stride:
                is_regular = border % stride == 0 and end % border == 0
            elif stride >= border:
                is_regular = stride % border == 0
            else:
                # How groups go on beyond the cluster is no matter.
                is_regular = border % end == 0 or border == borders[-1]
            if not is_regular:
                return None
            first, last = max(stride, below), min(end, border)
            if last > first:
                inside.append((last // first, first // below))
        found.append(tuple(inside))
        below = border
    return tuple(found)
