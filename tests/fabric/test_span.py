"""Which tiers a group spans, against counting ranks one by one."""

import math

import pytest

from mc.fabric import Cluster, FabricError, Link, Tier, is_even, span

LINK = Link(latency=1e-6, bandwidth=1e11)


def cluster(*fan_outs: int) -> Cluster:
    return Cluster("test", tuple(Tier(f"t{i}", LINK, fan_out) for i, fan_out in enumerate(fan_outs)))


@pytest.mark.parametrize(
    ("fan_outs", "ranks", "units", "even"),
    [
        ((8, 32, 4), 1024, (8, 32, 4), True),
        ((8, 32, 4), 256, (8, 32), True),
        ((8, 32, 4), 257, (8, 32, 2), False),
        ((8, 32, 4), 8, (8,), True),
        ((8, 32, 4), 5, (5,), True),
        ((8, 32, 4), 12, (8, 2), False),
        ((8, 32, 4), 16, (8, 2), True),
        ((8, 32, 4), 264, (8, 32, 2), False),
        ((8, 32, 4), 1, (), True),
        ((1,), 1, (), True),
        ((5,), 3, (3,), True),
    ],
)
def test_span(fan_outs, ranks, units, even):
    extents = span(cluster(*fan_outs), ranks)
    assert tuple(extent.units for extent in extents) == units
    assert is_even(extents) is even


@pytest.mark.parametrize("fan_outs", [(4, 8, 3), (3, 2, 5), (2,), (1, 4), (2, 2, 2, 2)])
def test_span_by_counting(fan_outs):
    whole = cluster(*fan_outs)
    for ranks in range(1, whole.size + 1):
        found = {extent.index: extent for extent in span(whole, ranks)}
        inner = 1
        for index, fan_out in enumerate(fan_outs):
            # Units of the tier below, within the first unit of this tier, that hold a rank of the group.
            unit = [rank for rank in range(ranks) if rank < inner * fan_out]
            reached = {rank // inner for rank in unit}
            assert (index in found) == (len(reached) > 1)
            if index in found:
                sizes = [
                    sum(rank // inner == each for rank in range(ranks))
                    for each in range(math.ceil(ranks / inner))
                ]
                assert found[index].units == len(reached)
                assert found[index].ranks_per_unit == inner
                assert found[index].even == (set(sizes) == {inner})
                assert found[index].tier is whole.tiers[index]
            inner *= fan_out


def test_an_even_group_is_the_product_of_its_extents():
    whole = cluster(8, 32, 4)
    for ranks in range(1, whole.size + 1):
        extents = span(whole, ranks)
        product = math.prod(extent.units for extent in extents)
        assert (product == ranks) == is_even(extents)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (0, "ranks: expected a whole number of at least 1; got 0"),
        (-4, "ranks: expected a whole number of at least 1; got -4"),
        (2.0, "ranks: expected a whole number of at least 1; got 2.0"),
        (True, "ranks: expected a whole number of at least 1; got True"),
        (1025, "ranks: expected at most 8 x 32 x 4 = 1024, the size of `test`; a group of 1025 does not fit"),
    ],
)
def test_groups_that_cannot_be(ranks, message):
    with pytest.raises(FabricError) as caught:
        span(cluster(8, 32, 4), ranks)
    assert str(caught.value) == message
