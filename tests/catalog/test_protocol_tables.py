"""NCCL's constants, typed in a second time from its source: src/graph/tuning.cc and topo.h of 2.30.7."""

import pytest

from mc import catalog
from mc.catalog.load import DATA, LinksFile, ProtocolsFile, with_protocols
from mc.document import ConfigError, read, read_text, validate

US, GB = 1e-6, 1e9
NVIDIA = {
    **{f"NVLink-{generation}": "NVLINK" for generation in (2, 3, 4, 5)},
    **{f"PCIe-{generation}": "PCI" for generation in (3, 4, 5)},
    **{name: "NET" for name in ("InfiniBand-EDR", "InfiniBand-HDR", "InfiniBand-NDR", "InfiniBand-XDR")},
    **{name: "NET" for name in ("Ethernet-400G", "Ethernet-800G")},
}
# (family, protocol) -> us.
BASE = {
    ("ring", "LL"): 6.6,
    ("ring", "LL128"): 14,
    ("ring", "Simple"): 8.4,
    ("tree", "LL"): 6.8,
    ("tree", "LL128"): 14,
    ("tree", "Simple"): 8.4,
}
# kind of link -> LL, LL128, Simple of a tree, then of a ring, us.
HOPS = {
    "NVLINK": ((0.6, 1.25, 4.0), (0.6, 1.9, 3.4)),
    "PCI": ((1.0, 1.9, 4.0), (1.0, 2.5, 5.7)),
    "NET": ((5.0, 8.5, 14), (2.7, 4.0, 14)),
}
# GB/s that a ring reaches by Simple: topo.h, NVLinks per GPU; lanes; 0.96 of the card.
REACHED = {
    "NVLink-2": 6 * 20,
    "NVLink-3": 12 * 20,
    "NVLink-4": 18 * 20.6,
    "NVLink-5": 18 * 40.1,
    "PCIe-3": 12,
    "PCIe-4": 20,
}
LL_CAP = {"NVLink-2": 39.0, "NVLink-3": 87.7, "NVLink-4": 141.0, "NVLink-5": 282.0, "InfiniBand-NDR": 20.4}
CHANNEL_CAPS = {
    "NVLink-2": (20, 20, 26.5),
    "NVLink-3": (20, 20, 24),
    "NVLink-4": (36.7, 36.7, 38.7),
    "NVLink-5": (40, 55.6, 70),
}
CORRECTIONS = {
    "LL": "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1 1",
    "LL128": "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1 1",
    "Simple": ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9 .9",
}


def table(name):
    found = catalog.link(name).protocols
    return {} if found is None else {each.name: each for each in found.protocols}


def test_which_links_have_tables():
    assert {name for name, link in catalog.links().items() if link.protocols} == set(NVIDIA)
    for name, kind in NVIDIA.items():
        # LL128 is used over NVLink and, where NVLink leads to it, the network.
        assert list(table(name)) == (["LL", "Simple"] if kind == "PCI" else ["LL", "LL128", "Simple"])


@pytest.mark.parametrize("name", NVIDIA)
def test_latencies(name):
    for protocol, each in table(name).items():
        place = ["LL", "LL128", "Simple"].index(protocol)
        tree, ring = (row[place] * US for row in HOPS[NVIDIA[name]])
        assert each.hop_latency.value == pytest.approx(ring)
        own = each.tree.hop_latency
        assert (each.hop_latency if own is None else own).value == pytest.approx(tree)
        assert each.base_latency.value == pytest.approx(BASE["ring", protocol] * US)
        own = each.tree.base_latency
        assert (each.base_latency if own is None else own).value == pytest.approx(BASE["tree", protocol] * US)


@pytest.mark.parametrize("name", NVIDIA)
def test_efficiencies(name):
    link, rows = catalog.link(name), table(name)
    simple = rows["Simple"].efficiency.value
    if name in REACHED:
        assert simple * link.bandwidth_per_direction == pytest.approx(REACHED[name] * GB, rel=2e-3)
    assert rows["LL"].efficiency.value == pytest.approx(simple / 2, rel=1e-3)
    assert rows["LL"].tree.efficiency.value == pytest.approx(simple / 3.8, rel=1e-3)
    assert rows["Simple"].tree.efficiency.value == pytest.approx(simple * 0.92, rel=1e-3)
    if "LL128" in rows:
        outside = NVIDIA[name] == "NET"
        assert rows["LL128"].efficiency.value == pytest.approx(simple * 0.92, rel=1e-3)
        part = 120 / 128 if outside else 7 / 9
        assert rows["LL128"].tree.efficiency.value == pytest.approx(simple * part, rel=1e-3)


def test_caps():
    for name, cap in LL_CAP.items():
        assert table(name)["LL"].bandwidth_cap.value == pytest.approx(cap * GB)
    for name, (ring, tree_128, tree) in CHANNEL_CAPS.items():
        rows = table(name)
        assert rows["LL128"].channel_bandwidth.value == pytest.approx(ring * GB)
        assert rows["LL128"].tree.channel_bandwidth.value == pytest.approx(tree_128 * GB)
        assert rows["Simple"].tree.channel_bandwidth.value == pytest.approx(tree * GB)


@pytest.mark.parametrize("name", NVIDIA)
def test_corrections_and_thresholds(name):
    for protocol, each in table(name).items():
        assert each.tree.correction.first == "64 B"
        assert list(each.tree.correction.factors) == [float(text) for text in CORRECTIONS[protocol].split()]
        assert each.tree.hops == ("chain" if NVIDIA[name] != "NET" else None)
    rows = table(name)
    # Bytes per thread times threads; LL in a ring for each rank.
    assert rows["LL"].ring.channel_size_per_rank.value == rows["LL"].tree.channel_size.value == 8 * 512
    assert rows["Simple"].channel_size.value == 64 * (256 if NVIDIA[name] == "PCI" else 512)
    if NVIDIA[name] == "NET":
        assert (rows["Simple"].ring.plateau.factor, rows["Simple"].ring.plateau.first) == (1.4, "64 B")
        overheads = [rows[key].ring.inner_hop_latency.value for key in ("LL", "LL128", "Simple")]
        assert overheads == pytest.approx([1e-6, 1e-6, 3e-6])


def test_reduction_in_switches():
    for name, links in (("NVLink-4", 0.85 * 15 / 16 * 370.8), ("NVLink-5", 0.74 * 31 / 32 * 721.8)):
        simple = table(name)["Simple"]
        assert simple.in_network.base_latency.value == pytest.approx(25 * US)
        reached = simple.in_network.efficiency.value * catalog.link(name).bandwidth_per_direction
        assert reached == pytest.approx(links * GB, rel=1e-3)
    # Neither the switches of older generations nor PCI Express reduce, and LL and LL128 never do it.
    for name in NVIDIA:
        serving = {key for key, each in table(name).items() if "in-network" in each.serves}
        assert serving == (
            set() if name in ("NVLink-2", "NVLink-3", "PCIe-3", "PCIe-4", "PCIe-5") else {"Simple"}
        )


def test_every_figure_has_an_origin():
    figures = catalog.link("NVLink-4").figures
    assert "protocols.LL.base_latency" in figures
    assert "NCCL 2.30.7" in figures["protocols.Simple.tree.hop_latency"].origin
    assert all(figure.origin for figure in figures.values())


GOOD = (
    "tables: [{id: t, name: T, protocols: [{name: A, source: A paper, base_latency: 1 us, hop_latency: 1 us,"
    " efficiency: %s, serves: [ring]}]}]"
)


@pytest.mark.parametrize(
    ("efficiency", "message"),
    [
        ("1.5", "tables.0.protocols.0.efficiency: expected an efficiency of at most 1; got 1.5"),
        ("0", "tables.0.protocols.0.efficiency"),
        ("{value: 0.5, source: a, estimate: b}", "expected either `source` or `estimate`"),
    ],
)
def test_broken_tables_are_refused(efficiency, message):
    with pytest.raises(ConfigError) as caught:
        validate(read_text(GOOD % efficiency, "protocols.yaml"), ProtocolsFile)
    assert message in str(caught.value)


def test_a_table_that_is_not_there_is_refused():
    text = (
        (DATA / "links.yaml")
        .read_text(encoding="utf-8")
        .replace("protocols: nccl-network", "protocols: nccl-net", 1)
    )
    with pytest.raises(ConfigError, match="protocols"):
        validate(with_protocols(read_text(text, "links.yaml"), read(DATA / "protocols.yaml")), LinksFile)
