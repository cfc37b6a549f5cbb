"""Links, tiers and clusters: what they refuse, what is traced, and how they are built from a file."""

import equinox as eqx
import jax
import pytest

from mc.config import load_cluster
from mc.errors import InputError
from mc.fabric import Cluster, Link, Tier, build_cluster, smallest_bandwidth

LINK = Link(latency=1e-6, bandwidth=1e11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link(-1e-6, 1e9), "latency: expected a number >= 0; got -1e-06"),
        (lambda: Link(1e-6, 0.0), "bandwidth: expected a number > 0; got 0.0"),
        (lambda: Link(1e-6, float("inf")), "bandwidth: expected a finite number; got inf"),
        (lambda: Link(float("nan"), 1e9), "latency: expected a finite number; got nan"),
        (lambda: Tier("a", LINK, 0), "tier `a`: fan_out: expected a whole number of at least 1; got 0"),
        (lambda: Tier("a", LINK, 2.5), "tier `a`: fan_out: expected a whole number of at least 1; got 2.5"),
        (
            lambda: Tier("a", LINK, 2, reduction_radix=1),
            "tier `a`: reduction_radix: expected a whole number of at least 2, or None; got 1",
        ),
        (lambda: Tier("a", LINK, 2, hop_latency=-1.0), "hop_latency: expected a number >= 0; got -1.0"),
        (lambda: Cluster("c", ()), "cluster `c`: expected at least one tier; got none"),
        (
            lambda: Cluster("c", (Tier("a", LINK, 2), Tier("a", LINK, 2))),
            "cluster `c`: expected tiers with names of their own; got `a` twice",
        ),
        (
            lambda: Cluster("c", (Tier("a", LINK, 2),), -1.0),
            "reduction_time_per_byte: expected a number >= 0; got -1.0",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message


def test_numbers_are_traced_and_structure_is_static():
    cluster = Cluster("c", (Tier("a", LINK, 8, reduction_radix=8), Tier("b", LINK, 4)))
    assert len(jax.tree.leaves(cluster)) == 7  # latency, bandwidth and hop latency of two tiers, and γ

    @eqx.filter_jit
    @eqx.debug.assert_max_traces(max_traces=1)
    def least(cluster):
        return smallest_bandwidth(cluster.tiers)

    for bandwidth in (1e9, 2e9, 1e12):
        changed = eqx.tree_at(lambda c: c.tiers[1].link.bandwidth, cluster, jax.numpy.asarray(bandwidth))
        assert float(least(changed)) == pytest.approx(min(bandwidth, 1e11))


def test_hop_latency_defaults_to_that_of_the_link():
    assert float(Tier("a", LINK, 2).hop_latency) == pytest.approx(1e-6)
    assert float(Tier("a", LINK, 2, hop_latency=2e-7).hop_latency) == pytest.approx(2e-7)


def test_size():
    cluster = Cluster("c", (Tier("a", LINK, 8), Tier("b", LINK, 32), Tier("d", LINK, 4)))
    assert cluster.size == 1024
    assert cluster.size_text == "8 x 32 x 4 = 1024"
    assert Cluster("c", (Tier("a", LINK, 8),)).size_text == "8"


FILE = """
name: two tiers
chip: {name: any, peak: {bf16: 1 TFLOP/s}}
tiers:
  - name: node
    link: {bandwidth: 900 GB/s, duplex: sum, latency: 1 us}
    fan_out: 8
    reduction_radix: 8
  - name: pod
    link: {bandwidth: 400 Gb/s, duplex: each, latency: 5 us}
    fan_out: 4
    links_per_rank: 2
    oversubscription: 4
    hop_latency: 0.5 us
"""


def test_build_cluster(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(FILE)
    cluster = build_cluster(load_cluster(path))
    assert cluster.name == "two tiers"
    node, pod = cluster.tiers
    # 900 GB/s counts both directions; 400 Gb/s is 50 GB/s each way, two links, a quarter of it.
    assert float(node.link.bandwidth) == pytest.approx(450e9)
    assert float(pod.link.bandwidth) == pytest.approx(25e9)
    assert [float(tier.link.latency) for tier in cluster.tiers] == pytest.approx([1e-6, 5e-6])
    assert [float(tier.hop_latency) for tier in cluster.tiers] == pytest.approx([1e-6, 0.5e-6])
    assert [(tier.name, tier.fan_out, tier.reduction_radix) for tier in cluster.tiers] == [
        ("node", 8, 8),
        ("pod", 4, None),
    ]
