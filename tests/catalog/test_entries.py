"""What holds for every entry, whatever its numbers."""

import subprocess
import sys
from itertools import pairwise

import pytest
from pydantic import ValidationError

from mc import catalog
from mc.catalog.link import TIERS
from mc.catalog.load import ChipsFile
from mc.config.names import FORMATS
from mc.document import ConfigError, read_text, validate
from mc.errors import InputError

ENTRIES = {**catalog.chips(), **catalog.links()}
EXPECTED = {
    *("A100", "H100", "H200", "B200", "B300", "GB200", "GB300", "Rubin", "MI300X", "MI325X", "MI355X"),
    *("TPU-v4", "TPU-v5p", "TPU-v5e", "TPU-v6e", "TPU-Ironwood", "Trainium2"),
    *("on-die", "die-to-die", "UCIe-A", "NVLink-C2C", "NVLink-3", "NVLink-4", "NVLink-5", "NVLink-6"),
    *("xGMI-MI300X", "ICI-v5p", "ICI-Ironwood", "NeuronLink-3", "PCIe-4", "PCIe-5", "PCIe-6"),
    *("InfiniBand-HDR", "InfiniBand-NDR", "InfiniBand-XDR", "Ethernet-400G", "Ethernet-800G", "Slingshot-11"),
    *("EFA-v2", "EFA-v3", "EFA-v4", "inter-site-400ZR"),
}


def test_everything_promised_is_there():
    assert set(ENTRIES) >= EXPECTED
    assert not set(catalog.chips()) & set(catalog.links())


@pytest.mark.parametrize("name", ENTRIES)
def test_each_figure_has_one_origin(name):
    for key, figure in ENTRIES[name].figures.items():
        assert (figure.source is None) != (figure.estimate is None), key
        assert len(figure.origin.split()) >= 2 or figure.origin.startswith("IEEE"), key
        assert figure.is_estimate == (figure.source is None)


@pytest.mark.parametrize("name", catalog.chips())
def test_peaks_are_dense_and_ordered(name):
    """Fewer bits are never slower, and a step down is worth a little over four at most."""
    peak = {number_format: figure.value for number_format, figure in catalog.chip(name).peak.items()}
    assert set(peak) <= set(FORMATS)
    assert peak.get("fp16", peak["bf16"]) == peak["bf16"]
    ladder = [
        peak[number_format] for number_format in ("tf32", "bf16", "fp8", "fp4") if number_format in peak
    ]
    assert all(1 <= after / before < 4.5 for before, after in pairwise(ladder))


@pytest.mark.parametrize("name", catalog.chips())
def test_chips_name_links_of_the_right_tier(name):
    chip = catalog.chip(name)
    assert chip.scale_up_link is not None
    assert catalog.link(chip.scale_up_link).tier == "scale-up"
    if chip.scale_out_link is not None:
        assert catalog.link(chip.scale_out_link).tier == "scale-out"


def test_links_come_innermost_first():
    tiers = [TIERS.index(link.tier) for link in catalog.links().values()]
    assert tiers == sorted(tiers)


@pytest.mark.parametrize("name", catalog.links())
def test_direction(name):
    link = catalog.link(name)
    assert link.bandwidth_per_direction * {"sum": 2, "each": 1}[link.duplex] == link.bandwidth.value


def test_latency_and_reach_grow_outwards():
    """The quickest link of a tier is no slower than the quickest of the next (host links aside)."""
    by_tier = {
        tier: [each for each in catalog.links().values() if each.tier == tier]
        for tier in TIERS
        if tier != "host"
    }
    quickest = [min(each.latency.value for each in links) for links in by_tier.values()]
    assert quickest == sorted(quickest)
    shortest = [min(each.reach.value for each in links if each.reach) for links in list(by_tier.values())[1:]]
    assert shortest == sorted(shortest)


UNKNOWN = [
    (catalog.chip, "h100", "unknown chip `h100`; did you mean `H100`?"),
    (catalog.chip, "H100-SXM", "unknown chip `H100-SXM`; did you mean `H100`?"),
    (catalog.chip, "mi355", "unknown chip `mi355`; did you mean `MI355X`?"),
    (catalog.chip, "abacus", "unknown chip `abacus`; expected one of A100, H100,"),
    (catalog.link, "nvlink5", "unknown link `nvlink5`; did you mean `NVLink-5`?"),
    (catalog.link, "H100", "unknown link `H100`; expected one of on-die,"),
]


@pytest.mark.parametrize(("find", "name", "message"), UNKNOWN)
def test_unknown_names(find, name, message):
    with pytest.raises(catalog.UnknownName) as caught:
        find(name)
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, InputError)


GOOD = (
    "chips: [{id: X, name: X, vendor: V, year: 2025,"
    " peak: {bf16: %s}, memory_size: %s, memory_bandwidth: %s}]"
)
FIGURE = "{value: %s, source: A data sheet}"
BROKEN = [
    (
        ("{value: 1 PFLOP/s}", FIGURE % "80 GB", FIGURE % "1 TB/s"),
        "expected either `source` or `estimate`; got neither",
    ),
    (
        ("{value: 1 PFLOP/s, source: a, estimate: b}", FIGURE % "80 GB", FIGURE % "1 TB/s"),
        "expected either `source` or `estimate`; got `source` and `estimate`",
    ),
    (
        (FIGURE % "1 PFLOPS", FIGURE % "80 GB", FIGURE % "1 TB/s"),
        "chips.0.peak.bf16.value: expected a rate of compute",
    ),
    ((FIGURE % "1 PFLOP/s", FIGURE % "80", FIGURE % "1 TB/s"), "chips.0.memory_size.value: expected a size"),
    ((FIGURE % "1 PFLOP/s", FIGURE % "80 GB", FIGURE % "0 TB/s"), "chips.0.memory_bandwidth.value"),
    (
        (FIGURE % "1 PFLOP/s", FIGURE % "80 GB", "{value: 1 TB/s, source: a, dimension: size}"),
        "chips.0.memory_bandwidth.dimension",
    ),
]


@pytest.mark.parametrize(("figures", "message"), BROKEN)
def test_broken_files_are_refused(figures, message):
    with pytest.raises(ConfigError) as caught:
        validate(read_text(GOOD % figures, "chips.yaml"), ChipsFile)
    assert message in str(caught.value)
    assert str(caught.value).startswith("chips.yaml:1:")


def test_ids_are_unique():
    chip = (
        (GOOD % (FIGURE % "1 PFLOP/s", FIGURE % "80 GB", FIGURE % "1 TB/s"))
        .removeprefix("chips: [")
        .removesuffix("]")
    )
    with pytest.raises(ConfigError, match=r"chips\.1\.id: expected another id; `X` is taken"):
        validate(read_text(f"chips: [{chip}, {chip}]", "chips.yaml"), ChipsFile)


def test_entries_are_shared_and_frozen():
    assert catalog.chip("H100") is catalog.chip("H100")
    with pytest.raises(ValidationError, match="frozen"):
        catalog.chip("H100").year = 2030


def test_importing_the_catalog_leaves_jax_alone():
    code = (
        "import sys; from mc import catalog; catalog.chips(); catalog.links();"
        "sys.exit('jax' in sys.modules or 'rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
