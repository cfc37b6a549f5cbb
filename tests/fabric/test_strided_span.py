"""What groups of ranks that are a stride apart span, against lists of ranks."""

import collections
import itertools
import math

import pytest

from mc.config.axes import axes_of, count, cut, joined, reach
from mc.fabric import Cluster, FabricError, Kind, Link, Tier, Variation, is_even, span

LINK = Link(latency=1e-6, bandwidth=1e11)


def cluster(*fan_outs) -> Cluster:
    return Cluster("test", tuple(Tier(f"t{i}", LINK, fan_out) for i, fan_out in enumerate(fan_outs)))


def groups(axes, size: int) -> list[list[int]]:
    """Every group with these axes, by brute force: ranks that agree in all digits but those of the axes."""
    found = collections.defaultdict(list)
    block = axes[-1][0] * axes[-1][1]
    for rank in range(size if size % block == 0 else size // block * block):
        rest = rank
        for extent, stride in axes:
            rest -= rank // stride % extent * stride
        found[rest].append(rank)
    return [each for each in found.values() if len(each) == count(axes)]


def expected(whole: Cluster, axes):
    """Per tier, over all groups: units, fewest and most ranks, units in all, whether all do the same."""
    size, borders = whole.size, [1]
    for tier in whole.tiers:
        borders.append(borders[-1] * tier.fan_out)
    for index in range(len(whole.tiers)):
        units, held, in_all = [], [], []
        for group in groups(axes, size):
            inner = collections.Counter(rank // borders[index] for rank in group)
            outer = collections.Counter(unit * borders[index] // borders[index + 1] for unit in inner)
            held += inner.values()
            units += outer.values()
            in_all.append(len(inner))
        yield (
            index,
            max(units),
            min(held),
            max(held),
            max(in_all),
            len(set(held)) == 1 == len(set(in_all)),
            {*units},
        )


AXES = [
    ((2, 1),),
    ((8, 1),),
    ((4, 2),),
    ((2, 8),),
    ((4, 8),),
    ((3, 8),),
    ((6, 1),),
    ((3, 2),),
    ((5, 4),),
    ((12, 2),),
    ((4, 16),),
    ((2, 2), (2, 8)),
    ((2, 1), (3, 4)),
    ((4, 1), (4, 16)),
    ((2, 4), (3, 16)),
]


FAN_OUTS = [(8, 4, 3), (4, 6, 2), (2, 2, 2, 2, 2), (6, 4, 4), (96,)]


@pytest.mark.parametrize(
    ("fan_outs", "axes"),
    [pair for pair in itertools.product(FAN_OUTS, AXES) if groups(pair[1], math.prod(pair[0]))],
)
def test_against_lists_of_ranks(fan_outs, axes):
    whole = cluster(*fan_outs)
    found = {extent.index: extent for extent in span(whole, axes)}
    for index, units, fewest, most, in_all, even, kinds in expected(whole, axes):
        assert (index in found) == (units > 1)
        if units > 1:
            extent = found[index]
            assert (extent.units, extent.fewest_ranks, extent.most_ranks) == (units, fewest, most)
            assert (extent.units_in_all, extent.even) == (in_all, even)
            assert {kind.units for kind in extent.kinds} == kinds
            assert extent.ranks_per_unit == math.prod(fan_outs[:index])


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("fan_outs", [(8, 4, 3), (4, 6, 2), (2, 2, 2, 2, 2, 3)])
def test_a_closed_form_holds_only_where_all_groups_lie_alike(axes, fan_outs):
    borders = list(itertools.accumulate(fan_outs, lambda one, other: one * other))
    found = reach(axes, borders)
    patterns = {
        tuple(
            tuple(sorted(collections.Counter(rank // border for rank in group).values()))
            for border in borders
        )
        for group in groups(axes, borders[-1])
    }
    if found is None:
        assert not all(border % (size * stride) == 0 for border in borders for size, stride in axes)
    else:
        assert len(patterns) <= 1
        assert math.prod(count(each) for each in found) == count(axes)


def test_a_stride_skips_the_tiers_inside_it():
    whole = cluster(8, 32, 4)
    unit, pod = span(whole, 128, stride=8)
    assert (unit.tier.name, unit.units, unit.fewest_ranks, unit.ranks_per_unit) == ("t1", 32, 1, 8)
    assert (pod.tier.name, pod.units, pod.fewest_ranks, pod.units_in_all) == ("t2", 4, 32, 4)
    assert span(whole, 128, stride=8) == span(whole, ((128, 8),))
    assert span(whole, 1, stride=8) == ()
    assert span(whole, ()) == ()
    assert is_even(span(whole, 128, stride=8))


def test_neighbouring_axes_are_one():
    whole = cluster(8, 32, 4)
    assert span(whole, ((2, 4), (16, 8))) == span(whole, ((32, 4),))


def test_axes_stand_for_all_groups_and_a_number_for_the_first():
    whole = cluster(8, 32)
    assert [extent.units for extent in span(whole, 6)] == [6]
    inner, outer = span(whole, ((6, 1),))
    assert (inner.units, outer.units, outer.even) == (6, 2, False)
    assert {kind.units for kind in inner.kinds} == {2, 4, 6}


def test_units_that_differ():
    sizes = Cluster("sizes", (Tier("a", LINK, (4, 4, 3, 1)), Tier("b", LINK, 2), Tier("c", LINK, 2)))
    (one,) = span(sizes, ((2, 1),))[:1]
    # Ranks 10 and 11 are in different units of `a`.
    assert {kind.units for kind in one.kinds} == {1, 2}
    slow = Cluster("slow", (Tier("a", LINK, 4), Tier("b", LINK, 4, variations=(Variation((3,), 0),))))
    (extent,) = span(slow, ((4, 4),))
    assert extent.kinds == (Kind(4, 4, ((), (0,))),)
    assert span(slow, ((2, 4),))[0].links == ((), (0,))


@pytest.mark.parametrize(
    ("ranks", "stride", "message"),
    [
        (128, 0, "stride: expected a whole number of at least 1; got 0"),
        (128, 2.0, "stride: expected a whole number of at least 1; got 2.0"),
        (129, 8, "expected at most 8 x 32 x 4 = 1024, the size of `test`; 129 ranks 8 apart do not fit"),
        (((8, 1), (129, 8)), 1, "a group of 1032 does not fit"),
        (((2, 1), (200, 8)), 1, "200 ranks 8 apart do not fit"),
    ],
)
def test_groups_that_cannot_be(ranks, stride, message):
    with pytest.raises(FabricError) as caught:
        span(cluster(8, 32, 4), ranks, stride)
    assert message in str(caught.value)


def test_axes_of_dimensions():
    sizes = [("tp", 8), ("cp", 2), ("pp", 4), ("dp", 16)]
    assert axes_of(sizes, frozenset({"tp"})) == ((8, 1),)
    assert axes_of(sizes, frozenset({"cp", "dp"})) == ((2, 8), (16, 64))
    assert axes_of(sizes, frozenset({"tp", "cp"})) == ((16, 1),)
    assert joined([(2, 1), (1, 5), (3, 2), (2, 12)]) == ((6, 1), (2, 12))


@pytest.mark.parametrize("axes", [((16, 1),), ((8, 2),), ((4, 1), (4, 16)), ((2, 1), (4, 8), (3, 64))])
def test_parts_of_axes_are_their_digits(axes):
    ranks = [0]
    for extent, stride in axes:
        ranks = [rank + stride * place for place in range(extent) for rank in ranks]
    for skip in (1, 2, 3, 4, 8):
        for take in (1, 2, 3, 4, 8, 16):
            wanted = {ranks[skip * place] for place in range(take) if skip * place < len(ranks)}
            part = cut(axes, skip, take)
            if part is None:
                continue
            got = {0}
            for extent, stride in part:
                got = {rank + stride * place for place in range(extent) for rank in got}
            assert got == wanted
    assert cut(((4, 1), (4, 16)), 1, 6) is None
    assert cut(((4, 1), (4, 16)), 2, 4) == ((2, 2), (2, 16))
