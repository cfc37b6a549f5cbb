"""Bytes on the wire against the bounds of flat groups, against messages sent one by one, and on whole plans."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mc.config import load_experiment
from mc.fabric import Cluster, Link, Tier, Torus, build_cluster, crossed
from mc.parallel import Crossed, Group, build_plan, sent_by_tier, traffic
from mc.transformer import build_transformer

UNITS = st.lists(st.integers(2, 9), min_size=1, max_size=4)


@given(
    UNITS, st.sampled_from([("all-gather", 1), ("reduce-scatter", 1), ("all-reduce", 2), ("all-to-all", 1)])
)
def test_tiers_add_up_to_a_flat_group(units, case):
    collective, passes = case
    n = math.prod(units)
    sent = sent_by_tier(collective, 1e6, [Crossed(tier, each) for tier, each in enumerate(units)])
    assert [tier for tier, _ in sent] == list(range(len(units)))
    assert sum(each for _, each in sent) == pytest.approx(passes * (n - 1) / n * 1e6, rel=1e-12)


def test_an_all_to_all_is_counted_one_message_at_a_time():
    units = (2, 3, 4)
    n = math.prod(units)
    cluster = Cluster("c", tuple(Tier(f"t{u}", Link(0.0, 1.0), u) for u in units))
    found = dict(sent_by_tier("all-to-all", 24.0, crossed(cluster, Group("g", ((n, 1),)))))
    for tier in range(3):
        inside, outside = math.prod(units[:tier]), math.prod(units[: tier + 1])
        peers = sum(1 for peer in range(1, n) if peer < outside and peer >= inside)
        assert found[tier] == pytest.approx(peers * 24.0 / n)


def test_an_all_reduce_by_tiers_is_what_its_phases_send():
    # Reduce-scatter of B in 8 ranks sends 7/8 B, an all-reduce of B/8 over 4 nodes 2·3/4·B/8, and back.
    found = dict(sent_by_tier("all-reduce", 8.0, [Crossed(0, 8), Crossed(1, 4)]))
    assert found == pytest.approx({0: 2 * 7.0, 1: 2 * 0.75})


def test_a_chain_sends_over_its_outermost_tier():
    assert sent_by_tier("send-recv", 5.0, [Crossed(0, 2), Crossed(2, 3)]) == [(2, 5.0)]
    assert sent_by_tier("all-reduce", 5.0, []) == []


@pytest.mark.parametrize("dims", [(4,), (5,), (4, 4), (2, 3, 5)])
def test_hops_on_a_torus_are_the_mean_of_all_pairs(dims):
    shape = Torus(dims)
    cluster = Cluster("c", (Tier("t", Link(0.0, 1.0), math.prod(dims), shape=shape),))
    (one,) = crossed(cluster, Group("g", ((math.prod(dims), 1),)))
    pairs = [shape.distance(a, b) for a, b in itertools.permutations(range(math.prod(dims)), 2)]
    assert one.hops == pytest.approx(sum(map(float, pairs)) / len(pairs))


def test_a_published_plan():
    # Llama 3 405B: with tp 8 inside a node, per layer and micro-batch a gather and a scatter on the way, two gathers and a
    # scatter back, of 8,192 x 16,384 numbers in bf16, in each of two blocks; 16 micro-batches, 8 layers on a stage.
    experiment = load_experiment("configs/llama3-405b-16k.yaml")
    plan, shape = build_plan(experiment), build_transformer(experiment.model.transformer)
    cluster = build_cluster(experiment.cluster)
    found = {
        (each.dimension, each.tier): each for each in traffic(shape, plan, lambda g: crossed(cluster, g))
    }
    whole = 8192 * 16384 * 2
    # At the ends of the model five more for each micro-batch; terms of the loss and norms are small.
    assert found["tp", 0].bytes == pytest.approx(7 / 8 * whole * 5 * (2 * 8 + 1) * 16, rel=1e-3)
    # 1/8 of the activations there and back, over 8 chunks of 16 micro-batches; every stage of the middle sends them all.
    assert found["pp", 1].bytes == pytest.approx(2 * whole / 8 * 8 * 16, rel=1e-9)
    assert ("tp", 1) not in found


@pytest.mark.parametrize(("units", "half"), [(2, 8.0), (8, 8.0), (64, 8.0)])
def test_switches_that_reduce_are_sent_a_buffer_once(units, half):
    crossed_tier = Crossed(0, units)
    (_, by_ranks), (_, by_switches) = (
        sent_by_tier("all-reduce", 8.0, [each])[0]
        for each in (crossed_tier, crossed_tier._replace(reduces=True))
    )
    assert by_switches == half
    # 2(n − 1)/n over 1: towards half for many, and nothing is gained between two.
    assert by_ranks / by_switches == pytest.approx(2 * (units - 1) / units)
    # Only what is reduced and wanted by all.
    for collective in ("all-gather", "reduce-scatter", "all-to-all"):
        assert sent_by_tier(collective, 8.0, [crossed_tier]) == sent_by_tier(
            collective, 8.0, [crossed_tier._replace(reduces=True)]
        )


def test_a_tier_that_reduces_gets_the_part_of_a_rank():
    # Eight ranks inside have an eighth each; 8 B·(1/8) goes up.
    assert dict(sent_by_tier("all-reduce", 8.0, [Crossed(0, 8), Crossed(1, 4, reduces=True)])) == {
        0: 14.0,
        1: 1.0,
    }
