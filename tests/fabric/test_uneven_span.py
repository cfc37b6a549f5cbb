"""What a group spans where units differ, against counting ranks one by one."""

import collections

import numpy as np
import pytest

from mc.fabric import Cluster, Kind, Link, Tier, Variation, is_even, span, unit_of

LINK = Link(1e-6, 1e9)
NODE = Variation((1,), 0)
CLUSTERS = [
    Cluster("sizes", (Tier("a", LINK, (4, 4, 3, 1)), Tier("b", LINK, 2), Tier("c", LINK, 2))),
    Cluster("outer", (Tier("a", LINK, 2), Tier("b", LINK, (3, 1, 2)), Tier("c", LINK, 3))),
    Cluster("links", (Tier("a", LINK, 2, variations=(NODE,)), Tier("b", LINK, 3), Tier("c", LINK, 2))),
    Cluster(
        "both",
        (
            Tier("a", LINK, (1, 2, 3, 4)),
            Tier("b", LINK, 2, variations=(NODE, Variation((2, 3), -1))),
            Tier("c", LINK, 2, variations=(Variation((0,), 1),)),
        ),
    ),
]


@pytest.mark.parametrize("whole", CLUSTERS, ids=lambda each: each.name)
def test_by_counting(whole):
    tiers = range(len(whole.tiers))
    everyone = np.arange(whole.size)
    units = {tier: unit_of(whole, tier, everyone).tolist() for tier in range(-1, len(whole.tiers))}
    for ranks in range(1, whole.size + 1):
        found = {extent.index: extent for extent in span(whole, ranks)}
        for index in tiers:
            below = collections.Counter(units[index - 1][:ranks])
            members = collections.defaultdict(set)
            links = collections.defaultdict(set)
            for rank in range(ranks):
                unit = units[index][rank]
                members[unit].add(units[index - 1][rank])
                links[unit].add(
                    tuple(
                        number
                        for number, each in enumerate(whole.tiers[index].variations)
                        if units[each.of][rank] in each.units
                    )
                )
            assert (index in found) == any(len(each) > 1 for each in members.values())
            if index not in found:
                continue
            extent = found[index]
            assert extent.units == max(len(each) for each in members.values())
            assert extent.fewest_units == min(len(each) for each in members.values())
            assert extent.units_in_all == len(below)
            assert extent.fewest_ranks == min(below.values())
            assert extent.ranks_per_unit == max(collections.Counter(units[index - 1])[each] for each in below)
            assert extent.even == (len(set(below.values())) == 1)
            kinds = collections.Counter((len(members[unit]), tuple(sorted(links[unit]))) for unit in members)
            assert {(kind.units, kind.links): kind.count for kind in extent.kinds} == kinds
            assert extent.links == tuple(sorted(set().union(*links.values())))


def test_units_that_happen_to_be_filled_alike_are_even():
    whole = Cluster("c", (Tier("a", LINK, (2, 3)), Tier("b", LINK, 2)))
    assert is_even(span(whole, 4))
    assert not is_even(span(whole, 5))


def test_a_cluster_of_equals_has_one_kind_or_a_rest():
    whole = Cluster("c", (Tier("a", LINK, 8), Tier("b", LINK, 32), Tier("c", LINK, 4)))
    node, unit, pod = span(whole, 1000)
    assert node.kinds == (Kind(8, 125),)
    assert unit.kinds == (Kind(32, 3), Kind(29, 1))
    assert pod.kinds == (Kind(4, 1),)
    (inner, outer) = span(whole, 12)
    assert (inner.kinds, inner.fewest_units) == ((Kind(8, 1), Kind(4, 1)), 4)
    assert (outer.fewest_ranks, outer.even) == (4, False)
