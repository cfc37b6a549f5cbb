"""Grids as lists of links, for brute force: nothing here is computed as the package does."""

import itertools

import numpy as np

from mc.fabric import Torus


def place(torus: Torus, unit: int) -> tuple[int, ...]:
    """Coordinates, the first dimension counting fastest."""
    found = []
    for extent in torus.dims:
        found.append(unit % extent)
        unit //= extent
    return tuple(found)


def number(torus: Torus, coordinates) -> int:
    """The unit at some coordinates."""
    unit = 0
    for extent, each in zip(reversed(torus.dims), reversed(tuple(coordinates)), strict=True):
        unit = unit * extent + each
    return unit


def neighbours(torus: Torus, *, parallel: bool = False) -> list[list[int]]:
    """Per unit, who is at the other end of its links; with `parallel`, twice where two links lead there."""
    found: list[list[int]] = []
    for unit in range(torus.size):
        here, near = place(torus, unit), []
        for axis, way in itertools.product(range(len(torus.dims)), (1, -1)):
            there, extent = list(here), torus.dims[axis]
            there[axis] += way
            if not 0 <= there[axis] < extent:
                if not torus.wrap[axis]:
                    continue
                there[axis] %= extent
            near.append(number(torus, there))
        found.append(near if parallel else sorted(set(near)))
    return found


def loads(torus: Torus, source, target, weight=1.0) -> np.ndarray:
    """What each link carries, [units, dimensions, 2 ways], when messages go one dimension after the other.

    The shorter way round; half of a message each way where both are as long.
    """
    carried = np.zeros((torus.size, len(torus.dims), 2))
    for start, end, size in np.broadcast(source, target, weight):
        here, there = list(place(torus, int(start))), place(torus, int(end))
        for axis, extent in enumerate(torus.dims):
            ahead = (there[axis] - here[axis]) % extent
            back = extent - ahead
            if ahead:
                if not torus.wrap[axis]:
                    ways = [(0, ahead, 1.0)] if there[axis] > here[axis] else [(1, back, 1.0)]
                elif ahead == back:
                    ways = [(0, ahead, 0.5), (1, back, 0.5)]
                else:
                    ways = [(0, ahead, 1.0)] if ahead < back else [(1, back, 1.0)]
                for way, hops, part in ways:
                    at = list(here)
                    for _ in range(hops):
                        carried[number(torus, at), axis, way] += part * float(size)
                        at[axis] = (at[axis] + (1 if way == 0 else -1)) % extent
            here[axis] = there[axis]
    return carried
