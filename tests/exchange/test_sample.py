"""Times under noise against their floor, against each other's methods, and against what a state must do."""

import jax
import numpy as np
import pytest

from mc.collectives import evaluate, plans, stages
from mc.config import load_cluster
from mc.delays import Constant, Exponential
from mc.exchange import sample_times
from mc.fabric import (
    Cluster,
    FullyConnected,
    Link,
    LinkNoise,
    LinkStates,
    MarkovChain,
    SharedLinks,
    Tier,
    Torus,
    build_cluster,
    build_link_noise,
)
from tests.stats import assert_mean, assert_same_law

KEY = jax.random.key(20261202)
SIZE = 4e6
TWO_TIERS = Cluster(
    "two tiers",
    (
        Tier("node", Link(1e-6, 400e9), 4, reduction_radix=4, hop_latency=5e-7),
        Tier("pod", Link(5e-6, 50e9), 8, reduction_radix=3, hop_latency=1e-6),
    ),
)
TORUS = Cluster("torus", (Tier("slice", Link(1e-6, 90e9), 16, shape=Torus((4, 4))),))
MESH = Cluster("mesh", (Tier("node", Link(1e-6, 448e9), 8, shape=FullyConnected()),))
CLUSTERS = {
    "two tiers": (TWO_TIERS, 32),
    "not full": (TWO_TIERS, 20),
    "torus": (TORUS, 16),
    "mesh": (MESH, 8),
}


def noise_of(cluster, law=None, shared=None):
    return LinkNoise((law,) * len(cluster.tiers), (shared,) * len(cluster.tiers))


@pytest.mark.parametrize(
    ("place", "collective"),
    [
        *(("two tiers", each) for each in ("all-reduce", "all-gather", "broadcast", "all-to-all", "barrier")),
        ("not full", "all-reduce"),
        *(("torus", each) for each in ("all-reduce", "broadcast", "all-to-all")),
        ("mesh", "all-reduce"),
    ],
)
def test_jitter_of_nothing_adds_nothing(place, collective):
    cluster, ranks = CLUSTERS[place]
    size = 0.0 if collective == "barrier" else SIZE
    found = plans(cluster, collective, ranks, size)
    for row, how in found:
        sampled = sample_times(cluster, how, size, noise_of(cluster, Constant(0.0)), KEY, 200)
        assert sampled.floor == pytest.approx(row.time, rel=1e-5)
        np.testing.assert_allclose(sampled.times, sampled.floor, rtol=1e-5)
    assert found


def test_nothing_random_is_fixed():
    how = stages(TWO_TIERS, "all-reduce", 32, SIZE)
    sampled = sample_times(TWO_TIERS, how, SIZE, noise_of(TWO_TIERS), KEY, 300)
    assert (sampled.method, sampled.relative_error) == ("fixed", 0.0)
    assert (sampled.times == sampled.floor).all()
    assert sampled.times.size == 300


def test_a_state_that_all_share_slows_down_every_byte():
    """Three times as long for bytes, and a wait for each message: α·rounds + 3·transfer + rounds·d."""
    chain = MarkovChain.memoryless([1.0])
    states = LinkStates([3.0], [2e-6])
    cluster = Cluster("one tier", (Tier("pod", Link(5e-6, 50e9), 16),))
    noise = noise_of(cluster, shared=SharedLinks(chain, states, 16, 1))
    for name in ("ring", "halving-doubling", "recursive-doubling"):
        how = stages(cluster, "all-reduce", 16, SIZE, name)
        (row,) = evaluate(cluster, "all-reduce", 16, SIZE, name)
        transfer = row.time - row.rounds * 5e-6
        sampled = sample_times(cluster, how, SIZE, noise, KEY, 200)
        assert sampled.method == "schedule"
        wanted = row.rounds * (5e-6 + 2e-6) + 3 * transfer
        np.testing.assert_allclose(sampled.times, wanted, rtol=1e-5)


def test_one_slow_link_holds_up_a_ring_and_states_are_as_frequent_as_they_should():
    chain, states = MarkovChain.memoryless([0.9, 0.1]), LinkStates([1.0, 5.0], [0.0, 0.0])
    cluster = Cluster("one tier", (Tier("pod", Link(0.0, 50e9), 4),))
    noise = noise_of(cluster, shared=SharedLinks(chain, states, 1, 4))
    how = stages(cluster, "all-reduce", 4, SIZE, "ring")
    sampled = sample_times(cluster, how, SIZE, noise, KEY, 20_000)
    # With one round per rank a ring is done when what passed the slow link is.
    slow = sampled.times > 1.01 * sampled.floor
    assert_mean(slow.astype(float), 1 - 0.9**4)
    assert sampled.times.max() == pytest.approx(5 * sampled.floor, rel=1e-5)


def test_a_ring_carried_on_agrees_with_a_ring_run():
    cluster = Cluster("one tier", (Tier("pod", Link(5e-6, 50e9), 256),))
    noise = noise_of(cluster, Exponential(2e-6))
    how = stages(cluster, "all-reduce", 256, SIZE, "ring")
    full = sample_times(cluster, how, SIZE, noise, KEY, 200, most_updates=10**9)
    part = sample_times(cluster, how, SIZE, noise, jax.random.key(1), 200, most_updates=10**7)
    assert (full.method, part.method) == ("schedule", "growth")
    assert part.times.mean() == pytest.approx(full.times.mean(), rel=part.relative_error)


def test_switches_by_their_law_agree_with_switches_by_their_messages():
    noise = noise_of(TWO_TIERS, Exponential(2e-6))
    how = stages(TWO_TIERS, "all-reduce", 32, SIZE, "in-network")
    messages = sample_times(TWO_TIERS, how, SIZE, noise, KEY, 5000)
    law = sample_times(TWO_TIERS, how, SIZE, noise, jax.random.key(1), 5000, most_updates=1000)
    assert (messages.method, law.method) == ("schedule", "tree")
    assert_same_law(messages.times, law.times)


def test_what_is_too_long_ends_with_barriers_and_says_that_its_error_is_not_known():
    noise = noise_of(TWO_TIERS, Exponential(2e-6))
    how = stages(TWO_TIERS, "all-reduce", 32, SIZE, "halving-doubling")
    sampled = sample_times(TWO_TIERS, how, SIZE, noise, KEY, 500, most_updates=100)
    assert (sampled.method, sampled.relative_error) == ("barriers", None)
    assert (sampled.times > sampled.floor).all()


def test_a_cluster_file_says_what_is_random():
    congestion = (
        "{shared_by: node, states: [{name: idle, probability: 0.8}, "
        "{name: busy, probability: 0.2, slowdown: 2, delay: 5 us}]}"
    )
    overrides = ["tiers.0.jitter={family: exponential, mean: 1 us}", f"tiers.1.congestion={congestion}"]
    config = load_cluster("dgx-h100-superpod", overrides)
    noise = build_link_noise(config, 64).prepared()
    assert noise.is_random
    assert noise.jitter[0] is not None
    shared = noise.shared[1]
    assert shared is not None
    assert (shared.group, shared.groups) == (8, 8)
    cluster = build_cluster(config)
    quiet = build_link_noise(load_cluster("dgx-h100-superpod", []), 64)
    assert quiet.shared == (None, None, None)
    how = stages(cluster, "all-reduce", 64, SIZE, "hierarchical")
    sampled = sample_times(cluster, how, SIZE, noise, KEY, 500)
    assert sampled.times.mean() > sampled.floor
