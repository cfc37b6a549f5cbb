"""Protocol tables in files: what they say, and what they must not."""

import pytest

from mc.config import LinkConfig, ProtocolConfig, load_cluster, load_experiment, resolved
from mc.document import ConfigError

CLUSTER = """\
name: one tier
chip: {peak: {bf16: 1 TFLOP/s}}
tiers:
  - name: fabric
    fan_out: 8
    link:
      bandwidth: 50 GB/s
      duplex: each
      latency: 4 us
      protocols:
        - {name: quick, base_latency: 7 us, hop_latency: 3 us, efficiency: 50 %, bandwidth_cap: 20 GB/s}
        - name: wide
          hop_latency: 14 us
          channels: 16
          channel_bandwidth: 2 GB/s
          channel_size: 32 KiB
          serves: [ring, tree]
          ring: {plateau: {factor: 1.4, first: 64 B}}
          tree: {hops: chain, correction: {first: 64 B, factors: [1, 0.9]}}
"""


@pytest.fixture
def cluster(tmp_path):
    """Loads the cluster with one text replaced by another."""

    def load(old="", new="", overrides=()):
        file = tmp_path / "cluster.yaml"
        file.write_text(CLUSTER.replace(old, new) if old else CLUSTER)
        return load_cluster(str(file), overrides)

    return load


def test_a_table_in_a_file(cluster):
    quick, wide = cluster().tiers[0].link.protocols
    assert (quick.base_latency, quick.hop_latency, quick.efficiency, quick.bandwidth_cap) == (
        7e-6,
        3e-6,
        0.5,
        20e9,
    )
    assert quick.serves == ("ring", "tree", "in-network")
    assert (wide.base_latency, wide.efficiency, wide.channels, wide.channel_size) == (0.0, 1.0, 16, 32768.0)
    assert wide.tree.correction.factors == (1.0, 0.9)
    assert wide.of("in-network") is None
    assert wide.of("ring").plateau.factor == 1.4
    assert wide.of("tree").hop_latency == 14e-6


def test_a_table_can_be_changed_and_taken_away(cluster):
    changed = cluster(overrides=["tiers.0.link.protocols.0.efficiency=0.25"])
    assert changed.tiers[0].link.protocols[0].efficiency == 0.25
    assert cluster(overrides=["tiers.0.link.protocols=null"]).tiers[0].link.protocols is None


def test_links_of_the_catalog_bring_their_tables():
    link = load_cluster("dgx-h100-superpod", ["tiers.1.link.protocols.2.hop_latency=10 us"]).tiers[1].link
    assert [each.name for each in link.protocols] == ["LL", "LL128", "Simple"]
    assert link.protocols[2].hop_latency == 10e-6
    assert load_cluster("tpu-v5p-pod").tiers[0].link.protocols is None
    shown = resolved(load_cluster("dgx-h100-superpod"))["tiers"][1]["link"]["protocols"][0]
    assert (shown["name"], shown["base_latency"], shown["hop_latency"]) == ("LL", "6.6 us", "2.7 us")
    assert "source" not in shown


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "name: wide",
            "name: quick",
            "12:17: tiers.0.link.protocols.1.name: expected another name; `quick` is taken",
        ),
        ("name: quick", "name: auto", "expected another name; `auto` has a meaning in `protocol`"),
        ("efficiency: 50 %", "efficiency: 0", "tiers.0.link.protocols.0.efficiency"),
        ("efficiency: 50 %", "efficiency: 120 %", "tiers.0.link.protocols.0.efficiency"),
        ("bandwidth_cap: 20 GB/s", "bandwidth_cap: 0 GB/s", "tiers.0.link.protocols.0.bandwidth_cap"),
        ("bandwidth_cap: 20 GB/s", "bandwidth_cap: 20", "a bare number has no unit"),
        ("hop_latency: 3 us, ", "", "tiers.0.link.protocols.0.hop_latency"),
        ("hop_latency: 3 us", "hop_latncy: 3 us", "unknown key; did you mean `hop_latency`?"),
        ("channels: 16", "channels: 0", "tiers.0.link.protocols.1.channels"),
        (
            "serves: [ring, tree]",
            "serves: [ring]",
            "expected `tree` in `serves`, since its numbers are given",
        ),
        ("serves: [ring, tree]", "serves: [ring, ring, tree]", "expected each family once; got `ring` twice"),
        (
            "ring: {plateau",
            "ring: {hops: chain, plateau",
            "tiers.0.link.protocols.1.ring.hops: expected for `tree`",
        ),
        ("factor: 1.4", "factor: 0.5", "tiers.0.link.protocols.1.ring.plateau.factor"),
        ("factors: [1, 0.9]", "factors: [1, 0]", "tiers.0.link.protocols.1.tree.correction.factors.1"),
        ("factors: [1, 0.9]", "factors: []", "tiers.0.link.protocols.1.tree.correction.factors"),
    ],
)
def test_mistakes(cluster, old, new, message):
    with pytest.raises(ConfigError) as caught:
        cluster(old, new)
    assert message in str(caught.value)


def test_an_empty_table_is_none():
    with pytest.raises(ValueError, match="protocols"):
        LinkConfig.model_validate(
            {"bandwidth": "1 GB/s", "duplex": "each", "latency": "1 us", "protocols": []}
        )


def test_the_plan_names_a_protocol():
    assert load_experiment().plan.protocol == "auto"
    assert load_experiment("quickstart", ["plan.protocol=Simple"]).plan.protocol == "Simple"
    assert load_experiment("quickstart", ["plan.protocol=none"]).plan.protocol == "none"
    for name, message in (
        ("all", "plan.protocol: expected one protocol, `auto` or `none`; got `all`"),
        ("LL12", "plan.protocol: unknown protocol `LL12`; did you mean `LL128`?"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_experiment("quickstart", [f"plan.protocol={name}"])
        assert message in str(caught.value)


def test_a_protocol_without_the_family():
    config = ProtocolConfig.model_validate({"name": "A", "hop_latency": "1 us", "serves": ["tree"]})
    assert config.of("ring") is None
    assert config.of("tree") is not None
