"""Protocols as modules: limits, corrections, channels, and what a rank's messages meet under them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.config import ProtocolConfig
from mc.delays.checks import ParameterError
from mc.fabric import (
    Cluster,
    Correction,
    FabricError,
    Link,
    Plateau,
    Protocol,
    Terms,
    Tier,
    build_protocol,
    protocols,
)
from mc.fabric.protocol_links import (
    bandwidth_per_rank,
    base_latency,
    check_protocol,
    hop_latencies,
    terms_of,
)


def test_the_bandwidth_is_the_least_of_three_limits():
    def reached(links, channels=1.0, **terms):
        return float(Terms(**terms).bandwidth(links, channels))

    assert reached(100e9) == pytest.approx(100e9)
    assert reached(100e9, efficiency=0.8) == pytest.approx(80e9)
    assert reached(100e9, efficiency=0.8, bandwidth_cap=70e9) == pytest.approx(70e9)
    assert reached(100e9, channels=2, channel_bandwidth=30e9, bandwidth_cap=70e9) == pytest.approx(60e9)
    assert reached(50e9, channels=2, channel_bandwidth=30e9) == pytest.approx(50e9)


def test_small_messages_use_a_part_of_the_channels():
    terms = Terms(channel_size=4096.0)
    parts = [
        float(terms.part_of_channels(size, 8, 16.0)) for size in (0.0, 100.0, 4096.0, 8192.0, 65536.0, 1e9)
    ]
    assert parts == pytest.approx([1 / 16, 1 / 16, 1 / 16, 1 / 8, 1.0, 1.0])
    # Per rank: eight ranks need eight times as much to fill a channel.
    terms = Terms(channel_size_per_rank=4096.0)
    assert float(terms.part_of_channels(65536.0, 8, 16.0)) == pytest.approx(2 / 16)
    assert float(Terms().part_of_channels(1.0, 8, 16.0)) == 1.0
    # A fraction of a channel, where ranks share a link, is used whole.
    assert float(Terms(channel_size=4096.0).part_of_channels(1.0, 8, 0.5)) == 1.0


def test_a_correction_goes_from_entry_to_entry():
    correction = Correction(64.0, [1.0, 0.5, 0.8])
    sizes = [1.0, 64.0, 128.0, 256.0, 512.0, 1e9]
    assert [float(correction.at(size)) for size in sizes] == pytest.approx([1.0, 1.0, 0.5, 0.8, 1.0, 1.0])
    assert float(correction.at(64 * 2**0.5)) == pytest.approx(0.75)
    assert np.isfinite(float(jax.grad(correction.at)(100.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Terms(efficiency=0.0), "efficiency: expected a number > 0; got 0.0"),
        (lambda: Terms(efficiency=1.2), "efficiency: expected a number <= 1; got 1.2"),
        (lambda: Terms(hop_latency=-1e-6), "hop_latency: expected a number >= 0; got -1e-06"),
        (lambda: Terms(bandwidth_cap=0.0), "bandwidth_cap: expected a number > 0; got 0.0"),
        (lambda: Terms(base_latency=float("nan")), "base_latency: expected a finite number; got nan"),
        (lambda: Correction(0.0, [1.0]), "first: expected a number > 0; got 0.0"),
        (lambda: Plateau(0.5, 64.0), "factor: expected a number >= 1; got 0.5"),
        (lambda: Protocol("A", 0.0), "channels: expected a number > 0; got 0.0"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == message


def test_a_family_has_the_protocols_numbers_where_it_has_none_of_its_own():
    config = ProtocolConfig.model_validate(
        {
            "name": "A",
            "base_latency": "7 us",
            "hop_latency": "3 us",
            "efficiency": 0.5,
            "channels": 4,
            "tree": {"hop_latency": "5 us", "hops": "chain"},
            "in_network": {"base_latency": "25 us"},
        }
    )
    built = build_protocol(config, links_per_rank=2.0)
    assert built.ring is not None
    assert built.tree is not None
    assert built.in_network is not None
    assert float(built.channels) == 8.0
    assert float(built.ring.hop_latency) == pytest.approx(3e-6)
    assert (float(built.tree.hop_latency), built.tree.chain) == (pytest.approx(5e-6), True)
    assert float(built.tree.base_latency) == pytest.approx(7e-6)
    # Switches have a latency of their own.
    assert built.in_network.hop_latency is None
    assert float(built.in_network.base_latency) == pytest.approx(25e-6)
    only = build_protocol(config.model_copy(update={"serves": ("ring",), "tree": None, "in_network": None}))
    assert (only.tree, only.in_network) == (None, None)


def both(base, hop, efficiency, cap=None):
    terms = Terms(base_latency=base, hop_latency=hop, efficiency=efficiency, bandwidth_cap=cap)
    return {"ring": terms, "tree": terms}


CLUSTER = Cluster(
    "three",
    (
        Tier("node", Link(1e-6, 400e9), 8, protocols=(Protocol("A", **both(7e-6, 2e-6, 0.5)),)),
        Tier(
            "unit",
            Link(3e-6, 50e9),
            4,
            protocols=(Protocol("A", **both(9e-6, 4e-6, 0.9, 200e9)), Protocol("B", ring=Terms())),
        ),
        Tier("site", Link(20e-6, 10e9), 2),
    ),
)


def test_what_messages_meet_under_a_protocol():
    # The third tier has no table and stays a line; eight ranks of a node share its cap of 200 GB/s.
    tiers = CLUSTER.tiers
    assert [float(each) for each in hop_latencies(tiers, "A", "ring")] == pytest.approx([2e-6, 4e-6, 20e-6])
    found = [
        bandwidth_per_rank(tier, "A", "ring", width) for tier, width in zip(tiers, (1, 8, 32), strict=True)
    ]
    assert [float(each) for each in found] == pytest.approx([200e9, 25e9, 10e9])
    assert float(base_latency(tiers, "A", "ring")) == pytest.approx(9e-6)
    assert [float(each) for each in hop_latencies(tiers, None, "tree")] == pytest.approx([1e-6, 3e-6, 20e-6])
    found = [
        bandwidth_per_rank(tier, None, "tree", width) for tier, width in zip(tiers, (1, 8, 32), strict=True)
    ]
    assert [float(each) for each in found] == pytest.approx([400e9, 50e9, 10e9])
    assert float(base_latency(tiers, None, "tree")) == 0.0


def test_bandwidths_under_a_protocol_are_differentiable():
    def bandwidth(efficiency):
        tier = Tier("t", Link(1e-6, 1e9), 2, protocols=(Protocol("A", ring=Terms(efficiency=efficiency)),))
        return bandwidth_per_rank(tier, "A", "ring", 1)

    assert float(jax.jit(jax.grad(bandwidth))(jnp.asarray(0.5))) == pytest.approx(1e9)


def test_protocols_that_serve_a_family():
    assert protocols(CLUSTER.tiers, "ring") == ("A",)
    assert protocols(CLUSTER.tiers[1:], "ring") == ("A", "B")
    assert protocols(CLUSTER.tiers[1:], "tree") == ("A",)
    assert protocols(CLUSTER.tiers, "in-network") == ()
    assert protocols(CLUSTER.tiers[2:], "ring") == (None,)


@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("B", "ring", "protocol `B`: expected one that every tier has; `node` does not"),
        ("C", "ring", "unknown protocol `C`; expected one of A, B, auto, none"),
        ("A", "in-network", "protocol `A` of `node` does not serve in-network algorithms"),
    ],
)
def test_refusals(name, family, message):
    def meet():
        check_protocol(CLUSTER, CLUSTER.tiers, name)
        return terms_of(CLUSTER.tiers[0], name, family)

    with pytest.raises(FabricError) as caught:
        meet()
    assert str(caught.value) == message


def test_names_are_unique_on_a_tier():
    with pytest.raises(
        FabricError, match="tier `t`: expected protocols with names of their own; got `A` twice"
    ):
        Tier("t", Link(1e-6, 1e9), 2, protocols=(Protocol("A"), Protocol("A")))
