"""What a reducing switch can hold: a window, C bytes per round trip."""

import jax
import jax.numpy as jnp
import pytest

from mc.collectives import cost, stages
from mc.config import load_cluster
from mc.delays import Constant, ParameterError
from mc.errors import InputError
from mc.exchange import sample_times
from mc.fabric import Cluster, Link, LinkNoise, Tier, build_cluster

SIZE, HOP, WIDTH = 1e8, 1e-6, 100e9


def cluster_of(buffer, outer=None):
    inner = Tier("node", Link(1e-6, WIDTH), 8, hop_latency=HOP, reduction_radix=8, reduction_buffer=buffer)
    pod = Tier("pod", Link(1e-6, WIDTH), 16, hop_latency=HOP, reduction_radix=4, reduction_buffer=outer)
    return Cluster("two tiers", (inner, pod))


def seconds(cluster, ranks, size=SIZE):
    return float(cost(cluster, "all-reduce", ranks, size, "in-network").time)


def test_a_small_buffer_lets_its_bytes_through_per_round_trip():
    # In one node the way is one hop up and one down.
    round_trip, buffer = 2 * HOP, 64e3
    assert buffer / round_trip < WIDTH
    wanted = round_trip + SIZE * round_trip / buffer
    assert seconds(cluster_of(buffer), 8) == pytest.approx(wanted, rel=1e-6)


def test_a_large_buffer_is_no_limit():
    assert seconds(cluster_of(1e9), 8) == seconds(cluster_of(None), 8)
    assert seconds(cluster_of(None), 8) == pytest.approx(2 * HOP + SIZE / WIDTH, rel=1e-6)


def test_the_way_is_that_through_all_tiers_and_streams_are_as_wide_as_a_unit():
    # One hop in the node and two in the pod, up and down; above the node each of eight links has an eighth.
    round_trip, buffer = 6 * HOP, 64e3
    inside = seconds(cluster_of(buffer), 128)
    assert inside == pytest.approx(round_trip + SIZE * round_trip / buffer, rel=1e-6)
    above = seconds(cluster_of(None, buffer), 128)
    assert above == pytest.approx(round_trip + SIZE / 8 * round_trip / buffer, rel=1e-6)


def test_the_limit_holds_in_time_and_has_a_slope():
    cluster = cluster_of(64e3)
    noise = LinkNoise((Constant(0.0),) * 2, (None, None))
    how = stages(cluster, "all-reduce", 8, SIZE, "in-network")
    key = jax.random.key(0, impl="threefry2x32")
    sampled = sample_times(cluster, how, SIZE, noise, key, 200)
    assert sampled.times.max() == pytest.approx(seconds(cluster, 8), rel=1e-5)

    def time(buffer):
        return cost(cluster_of(buffer), "all-reduce", 8, SIZE, "in-network").time

    slope = float(jax.grad(time)(jnp.asarray(64e3)))
    assert slope == pytest.approx(-SIZE * 2 * HOP / 64e3**2, rel=1e-4)


def test_a_file_may_say_it_and_mistakes_are_named():
    config = load_cluster("dgx-h100-superpod", ["tiers.1.reduction_buffer=10 kB"])
    limited = build_cluster(config)
    free = build_cluster(load_cluster("dgx-h100-superpod", []))
    assert seconds(limited, 64, 1e9) > seconds(free, 64, 1e9)
    with pytest.raises(InputError, match="reduction_buffer: expected a reduction_radix with it"):
        load_cluster("dgx-h100-superpod", ["tiers.1.reduction_radix=null", "tiers.1.reduction_buffer=100 kB"])
    with pytest.raises(ParameterError, match="reduction_buffer: expected a number > 0; got 0"):
        cluster_of(0.0)
