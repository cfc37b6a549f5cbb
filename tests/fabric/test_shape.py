"""Shapes against brute force: distances by search, rings by trying all of them, boxes by counting."""

import collections
import itertools
import math

import numpy as np
import pytest

from mc.errors import InputError
from mc.fabric import FullyConnected, Level, Link, Tier, Torus, Tree
from tests.fabric.grids import neighbours

GRIDS = [
    Torus((5,)),
    Torus((4,), (False,)),
    Torus((2,)),
    Torus((2,), (True,)),
    Torus((4, 4)),
    Torus((3, 5)),
    Torus((2, 3, 4)),
    Torus((4, 3), (True, False)),
    Torus((3, 3), (False, False)),
    Torus((3, 3), (True, False)),
    Torus((2, 1, 3)),
    Torus((3, 2, 3), (False, False, False)),
]


@pytest.mark.parametrize("torus", GRIDS, ids=str)
def test_distances_and_diameter_by_search(torus):
    near = neighbours(torus)
    for source in range(torus.size):
        distance = {source: 0}
        queue = collections.deque([source])
        while queue:
            unit = queue.popleft()
            for other in near[unit]:
                if other not in distance:
                    distance[other] = distance[unit] + 1
                    queue.append(other)
        found = torus.distance(source, np.arange(torus.size))
        np.testing.assert_array_equal(found, [distance[unit] for unit in range(torus.size)])
    assert torus.diameter == max(
        torus.distance(unit, np.arange(torus.size)).max() for unit in range(torus.size)
    )


@pytest.mark.parametrize(
    "torus",
    [
        *(torus for torus in GRIDS if torus.size <= 18),
        *(
            Torus(dims, wrap)
            for dims in itertools.product((1, 2, 3), repeat=2)
            for wrap in itertools.product((False, True), repeat=2)
        ),
        Torus((3, 5), (False, False)),
        Torus((3, 5), (False, True)),
        Torus((2, 3, 2), (False, False, False)),
    ],
    ids=str,
)
def test_rings_of_neighbours_by_trying_all(torus):
    near = neighbours(torus)

    def closes(unit: int, seen: frozenset[int]) -> bool:
        if len(seen) == torus.size:
            return torus.size == 1 or 0 in near[unit]
        return any(closes(other, seen | {other}) for other in near[unit] if other not in seen)

    assert torus.is_hamiltonian == closes(0, frozenset([0]))


@pytest.mark.parametrize("torus", GRIDS, ids=str)
def test_links_that_a_unit_uses(torus):
    near = neighbours(torus, parallel=True)
    assert torus.used_links == max(len(each) for each in near)
    assert torus.links == 2 * len(torus.dims)
    # The unit in the corner, which is where everything that leaves it has to pass.
    assert sum(torus.rings) == len(near[0])


def test_units_are_numbered_along_the_first_dimension_first():
    torus = Torus((4, 3, 2))
    wanted = [(x, y, z) for z in range(2) for y in range(3) for x in range(4)]
    np.testing.assert_array_equal(torus.coordinates(np.arange(24)), wanted)


def test_boxes():
    torus = Torus((4, 3, 2))
    assert torus.boxes() == (1, 2, 3, 4, 8, 12, 24)
    for units in range(1, 25):
        box = torus.box(units)
        held = torus.coordinates(np.arange(units))
        extents = held.max(0) + 1
        # A box is full of its units.
        assert (box is not None) == (math.prod(extents.tolist()) == units)
        if box is not None:
            assert box.dims == tuple(extents.tolist())
            assert box.links == torus.links
            # Cut short, a dimension has no way round.
            assert box.wrap == tuple(
                w and e == d for w, e, d in zip(torus.wrap, extents, torus.dims, strict=True)
            )


def directed_rings(units: int) -> list[frozenset[tuple[int, int]]]:
    return [
        frozenset(zip((0, *order), (*order, 0), strict=True))
        for order in itertools.permutations(range(1, units))
    ]


@pytest.mark.parametrize("units", [2, 3, 4, 5, 6])
def test_disjoint_rings_of_a_full_mesh_by_trying_all(units):
    rings = directed_rings(units)

    def most(chosen: int, left: list[frozenset[tuple[int, int]]]) -> int:
        found = chosen
        for place, ring in enumerate(left):
            if found == units - 1:
                break
            rest = [other for other in left[place + 1 :] if not ring & other]
            if chosen + 1 + len(rest) > found:
                found = max(found, most(chosen + 1, rest))
        return found

    # All rings look alike, so one may be taken for granted.
    assert 1 + most(0, [ring for ring in rings[1:] if not ring & rings[0]]) == FullyConnected().rings(units)


def test_seven_disjoint_rings_of_eight():
    # A decomposition, as Tillson's theorem promises: exact cover of the 56 links, found by search.
    rings = directed_rings(8)
    with_link: dict[tuple[int, int], list[frozenset[tuple[int, int]]]] = {}
    for ring in rings:
        for link in ring:
            with_link.setdefault(link, []).append(ring)
    generator = np.random.default_rng(20)
    for each in with_link.values():
        generator.shuffle(each)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def cover(used: frozenset[tuple[int, int]], count: int) -> bool:
        if count == 7:
            return True
        free = [link for link in with_link if link not in used]
        # The next link out of rank 0: each ring has one.
        link = min(link for link in free if link[0] == 0)
        return any(cover(used | ring, count + 1) for ring in with_link[link] if not ring & used)

    assert cover(frozenset(), 0)
    assert FullyConnected().rings(8) == 7


def test_crossings_of_a_tree():
    tree = Tree((Level(4, 2.0), Level(3, 1.5), Level(5)))
    assert tree.size == 60
    assert tree.crossings(4) == ()
    assert tree.crossings(5) == ((4, 2.0),)
    assert tree.crossings(60) == ((4, 2.0), (12, 3.0))


LINK = Link(1e-6, 1e9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Torus(()), "dims: expected at least one dimension; got none"),
        (lambda: Torus((4, 0)), "dims: expected whole numbers of at least 1; got 0"),
        (
            lambda: Torus((4, 2.0)),  # pyright: ignore[reportArgumentType]
            "dims: expected whole numbers of at least 1; got 2.0",
        ),
        (lambda: Torus((4, 4), (True,)), "wrap: expected one value per dimension, 2; got 1"),
        (
            lambda: Torus((4, 4), links=3),
            "links: expected a whole number of at least 4, the links that a unit uses; got 3",
        ),
        (lambda: Tree(()), "levels: expected at least one level; got none"),
        (lambda: Tree((Level(0),)), "levels: fan_out: expected a whole number of at least 1; got 0"),
        (lambda: Tree((Level(4, 0.5),)), "levels: oversubscription: expected a number >= 1; got 0.5"),
        (
            lambda: Tier("a", LINK, 15, shape=Torus((4, 4))),
            "tier `a`: shape: expected a fan_out of 16 as the shape has; got 15",
        ),
        (
            lambda: Tier("a", LINK, (16, 15), shape=Torus((4, 4))),
            "tier `a`: shape: expected a fan_out of 16 as the shape has; got units of 15 to 16",
        ),
        (
            lambda: Tier("a", LINK, 8, shape=FullyConnected(), reduction_radix=8),
            "tier `a`: reduction_radix: expected None, since this shape has no switches; got 8",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message
