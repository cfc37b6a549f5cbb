"""Shapes of a tier: which links join its units.

A tier's link states what one rank has in one direction with *all* its links of the tier together. Switches
let it use all of that towards anybody; the other shapes do not:

- *fully connected*: a link of its own to each of the other units, so one neighbour gets 1/(n−1) of it (xGMI);
- *torus*: links to the next unit on either side in each dimension (the interconnect of TPUs). Messages
  between others pass through units on the way and share links with all that passes there;
- *tree*: levels of switches, of which each may have less bandwidth upwards than downwards.

Shapes are structure: static, hashable, without JAX.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mc.config.axes import Axes
from mc.errors import InputError


class ShapeError(InputError):
    """A shape cannot be."""


@dataclass(frozen=True)
class Switched:
    """A switch, or a fat tree at full bandwidth, joins all units."""

    has_switches: ClassVar[bool] = True

    @property
    def size(self) -> int | None:
        """How many units it joins; None for any number."""
        return None


@dataclass(frozen=True)
class FullyConnected:
    """Each pair of units has its own link."""

    has_switches: ClassVar[bool] = False

    @property
    def size(self) -> int | None:
        """How many units it joins; None for any number."""
        return None

    def rings(self, units: int) -> int:
        """How many directed rings through all of `units` units use no link twice.

        n−1, which is every link: for odd n the undirected cycles of Walecki (Lucas 1892), each in both
        directions; for even n by T. Tillson, "A Hamiltonian decomposition of K*₂ₘ, 2m ≥ 8", JCT B 29 (1980).
        The exceptions are four and six units with two and four.
        """
        return {1: 0, 4: 2, 6: 4}.get(units, units - 1)


@dataclass(frozen=True)
class Level:
    """One level of switches in a tree.

    Attributes:
        fan_out: how many units, or switches of the level below, a switch joins.
        oversubscription: what comes in from below over what goes on upwards, at least 1; of the top level it
            says nothing.
    """

    fan_out: int
    oversubscription: float = 1.0


@dataclass(frozen=True)
class Tree:
    """Levels of switches, lowest first.

    Attributes:
        levels: at least one.
    """

    levels: tuple[Level, ...]
    has_switches: ClassVar[bool] = True

    def __post_init__(self):
        if not self.levels:
            raise ShapeError("levels: expected at least one level; got none")
        for each in self.levels:
            if not _is_whole(each.fan_out, 1):
                raise ShapeError(
                    f"levels: fan_out: expected a whole number of at least 1; got {each.fan_out!r}"
                )
            if not (1 <= each.oversubscription < math.inf):
                raise ShapeError(
                    f"levels: oversubscription: expected a number >= 1; got {each.oversubscription!r}"
                )

    @property
    def size(self) -> int:
        """How many units it joins."""
        return math.prod(level.fan_out for level in self.levels)

    def crossings(self, units: int, axes: Axes | None = None) -> tuple[tuple[int, float], ...]:
        """What units of the tree pass through on their way up, below the level that joins all.

        Args:
            units: how many; the first ones.
            axes: where they are instead, if other groups lie between them.

        Returns:
            For each level that they leave: how many of them are below one of its switches, and how much less
            than the links of all units there together leads up from there.
        """
        found, below, factor = [], 1, 1.0
        for level in self.levels[:-1]:
            below *= level.fan_out
            factor *= level.oversubscription
            together = math.prod(min(size, max(1, below // stride)) for size, stride in axes or ((units, 1),))
            if units > together:
                found.append((together, factor))
        return tuple(found)


@dataclass(frozen=True)
class Torus:
    """A grid with a link to the next unit on either side in each dimension.

    Units are numbered along the first dimension first: unit x + n₁·(y + n₂·z) stands at (x, y, z).

    Attributes:
        dims: extent of each dimension, at least 1.
        wrap: whether the last unit of a dimension is joined to the first. In a dimension of two units that
            is a second link between them.
        links: links that a unit has by its make, which share its bandwidth equally; 2 per dimension if left
            out. At the edge of a grid that does not wrap, some lead nowhere.
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...] = ()
    links: int = 0
    has_switches: ClassVar[bool] = False

    def __post_init__(self):
        if not self.dims:
            raise ShapeError("dims: expected at least one dimension; got none")
        for each in self.dims:
            if not _is_whole(each, 1):
                raise ShapeError(f"dims: expected whole numbers of at least 1; got {each!r}")
        if not self.wrap:
            object.__setattr__(self, "wrap", tuple(extent > 2 for extent in self.dims))
        if len(self.wrap) != len(self.dims):
            raise ShapeError(
                f"wrap: expected one value per dimension, {len(self.dims)}; got {len(self.wrap)}"
            )
        # A dimension of one unit has nothing to be joined to.
        wrap = tuple(bool(each) and extent > 1 for each, extent in zip(self.wrap, self.dims, strict=True))
        object.__setattr__(self, "wrap", wrap)
        if self.links == 0:
            object.__setattr__(self, "links", 2 * len(self.dims))
        if not _is_whole(self.links, self.used_links):
            raise ShapeError(
                f"links: expected a whole number of at least {self.used_links}, the links that a unit uses; "
                f"got {self.links!r}"
            )

    @property
    def size(self) -> int:
        """How many units it joins."""
        return math.prod(self.dims)

    @property
    def rings(self) -> tuple[int, ...]:
        """Per dimension, how many rings its links form at once: two ways round, or out and back, or none."""
        return tuple(
            0 if extent == 1 else 2 if wrap else 1 for extent, wrap in zip(self.dims, self.wrap, strict=True)
        )

    @property
    def used_links(self) -> int:
        """How many links a unit in the middle has."""
        return sum(
            0 if extent == 1 else 1 if extent == 2 and not wrap else 2
            for extent, wrap in zip(self.dims, self.wrap, strict=True)
        )

    @property
    def is_hamiltonian(self) -> bool:
        """Whether some ring passes every unit once and only from neighbour to neighbour.

        A line has one if it wraps or has two units. A grid of more dimensions has one if it has an even
        number of units or wraps in some dimension (V. Batagelj, T. Pisanski, "Hamiltonian cycles in the
        Cartesian product of a tree and a cycle", Discrete Mathematics 38 (1982)).
        """
        extents = [(extent, wrap) for extent, wrap in zip(self.dims, self.wrap, strict=True) if extent > 1]
        if len(extents) < 2:
            return all(wrap or extent == 2 for extent, wrap in extents)
        return self.size % 2 == 0 or any(wrap for _, wrap in extents)

    @property
    def diameter(self) -> int:
        """The most hops between any two units."""
        return sum(
            extent // 2 if wrap else extent - 1 for extent, wrap in zip(self.dims, self.wrap, strict=True)
        )

    def box(self, units: int, axes: Axes | None = None) -> "Torus | None":
        """The part that units form: whole lines, whole planes; None if they form no box.

        A dimension that is not taken whole does not wrap. Links stay those of the whole.

        Args:
            units: how many; the first ones.
            axes: where they are instead. Lines and planes of other directions are boxes too; units with others
                between them are none.
        """
        dims, wrap, below = [], [], 1
        for extent, around in zip(self.dims, self.wrap, strict=True):
            take = 1
            for size, stride in axes or ((units, 1),):
                first, last = max(stride, below), min(stride * size, below * extent)
                if last > first:
                    if first > below or last % first or below % stride:
                        return None
                    take *= last // first
            dims.append(take)
            wrap.append(around and take == extent)
            below *= extent
        return Torus(tuple(dims), tuple(wrap), self.links) if math.prod(dims) == units else None

    def boxes(self) -> tuple[int, ...]:
        """How many units form a box, in increasing order."""
        below = itertools.accumulate((1, *self.dims[:-1]), lambda product, extent: product * extent)
        sizes = {
            inner * take
            for inner, extent in zip(below, self.dims, strict=True)
            for take in range(1, extent + 1)
        }
        return tuple(sorted(sizes))

    def coordinates(self, unit: Any) -> np.ndarray:
        """int64[..., dimensions]: where units stand."""
        rest, found = np.asarray(unit, np.int64), []
        for extent in self.dims:
            found.append(rest % extent)
            rest = rest // extent
        return np.stack(found, -1)

    def distance(self, source: Any, target: Any) -> np.ndarray:
        """int64[...]: hops from one unit to another, the shorter way round where a dimension wraps."""
        apart = np.abs(self.coordinates(source) - self.coordinates(target))
        extents, wrap = np.asarray(self.dims), np.asarray(self.wrap)
        return np.where(wrap, np.minimum(apart, extents - apart), apart).sum(-1)


Shape = Switched | FullyConnected | Torus | Tree


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
