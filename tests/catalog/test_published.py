"""Figures as their publishers print them, typed in a second time, in the units they are printed in."""

from itertools import pairwise

import pytest

from mc import catalog

# chip, format, TFLOP/s dense, where it is printed.
PEAKS = [
    ("A100", "bf16", 312, "NVIDIA A100 data sheet"),
    ("A100", "tf32", 156, "NVIDIA A100 data sheet"),
    ("A100", "int8", 624, "NVIDIA A100 data sheet"),
    ("H100", "bf16", 989, "NVIDIA H100 white paper: 989.4"),
    ("H100", "fp8", 1979, "NVIDIA H100 white paper: 1,978.9"),
    ("H200", "bf16", 989, "NVIDIA H200 data sheet"),
    ("B200", "bf16", 2250, "NVIDIA Blackwell brief"),
    ("B200", "fp4", 9000, "NVIDIA Blackwell brief"),
    ("GB200", "bf16", 2500, "NVIDIA GB200 NVL72 data sheet"),
    ("GB200", "fp8", 5000, "NVIDIA GB200 NVL72 data sheet"),
    ("GB200", "fp4", 10_000, "NVIDIA GB200 NVL72 data sheet"),
    ("GB300", "fp4", 15_000, "NVIDIA GB300 NVL72: 1,080 PFLOP/s for 72"),
    ("Rubin", "fp4", 35_000, "NVIDIA, CES 2026: NVFP4 training"),
    ("Rubin", "fp8", 17_500, "NVIDIA Vera Rubin NVL72"),
    ("MI300X", "bf16", 1307.4, "AMD MI300X data sheet"),
    ("MI325X", "fp8", 2614.9, "AMD MI325X data sheet"),
    ("MI355X", "fp4", 10_066, "AMD MI355X data sheet: 10.1 PFLOP/s"),
    ("TPU-v4", "bf16", 275, "Google Cloud documentation"),
    ("TPU-v5p", "bf16", 459, "Google Cloud documentation"),
    ("TPU-v5e", "bf16", 197, "Google Cloud documentation"),
    ("TPU-v6e", "bf16", 918, "Google Cloud documentation"),
    ("TPU-Ironwood", "bf16", 2307, "Google Cloud documentation"),
    ("TPU-Ironwood", "fp8", 4614, "Google Cloud documentation"),
    ("Trainium2", "bf16", 667, "AWS Neuron documentation"),
    ("Trainium2", "fp8", 1299, "AWS Neuron documentation"),
]

# chip, GB, TB/s, W (None where nobody publishes it).
CHIPS = [
    ("A100", 80, 2.039, 400),
    ("H100", 80, 3.35, 700),
    ("H200", 141, 4.8, 700),
    ("B200", 180, 8, 1000),
    ("GB200", 186, 8, 1200),
    ("GB300", 288, 8, 1400),
    ("Rubin", 288, 22, 1800),
    ("MI300X", 192, 5.3, 750),
    ("MI325X", 256, 6, 1000),
    ("MI355X", 288, 8, 1400),
    ("TPU-v4", 32 * 1.073741824, 1.2, 192),
    ("TPU-v5p", 95, 2.765, None),
    ("TPU-v5e", 16, 0.819, None),
    ("TPU-v6e", 32, 1.638, None),
    ("TPU-Ironwood", 192, 7.37, 900),
]

# link, GB/s in one direction: half of a vendor's sum (NVLink, NV-HBI, C2C, xGMI), an eighth of a port's Gb/s.
LINKS = [
    ("die-to-die", 10_000 / 2),
    ("UCIe-A", 64 * 32 / 8),
    ("NVLink-C2C", 900 / 2),
    ("NVLink-2", 300 / 2),
    ("NVLink-3", 600 / 2),
    ("NVLink-4", 900 / 2),
    ("NVLink-5", 1800 / 2),
    ("NVLink-6", 3600 / 2),
    ("xGMI-MI300X", 7 * 128 / 2),
    ("xGMI-MI355X", 7 * 153.6 / 2),
    ("ICI-v4", 6 * 50),
    ("ICI-v5e", 1600 / 8),
    ("ICI-v6e", 800 / 2),
    ("ICI-v5p", 4800 / 8),
    ("ICI-Ironwood", 1200 / 2),
    ("NeuronLink-3", 1280 / 2),
    ("PCIe-3", 16 * 8 * 128 / 130 / 8),
    ("PCIe-4", 16 * 16 * 128 / 130 / 8),
    ("PCIe-5", 16 * 32 * 128 / 130 / 8),
    ("PCIe-6", 121),
    ("InfiniBand-EDR", 100 / 8),
    ("InfiniBand-HDR", 200 / 8),
    ("InfiniBand-NDR", 400 / 8),
    ("InfiniBand-XDR", 800 / 8),
    ("Ethernet-400G", 400 / 8),
    ("Ethernet-800G", 800 / 8),
    ("Slingshot-11", 200 / 8),
    ("EFA-v2", 3200 / 32 / 8),
    ("EFA-v3", 3200 / 16 / 8),
    ("EFA-v4", 3200 / 8 / 8),
    ("campus-400G", 400 / 8),
    ("inter-site-400ZR", 400 / 8),
    ("inter-site-800ZR", 800 / 8),
]


@pytest.mark.parametrize(("name", "number_format", "teraflops", "printed"), PEAKS)
def test_peaks(name, number_format, teraflops, printed):
    assert catalog.chip(name).peak[number_format].value == pytest.approx(teraflops * 1e12, rel=1e-3), printed


@pytest.mark.parametrize(("name", "gigabytes", "terabytes_per_second", "watts"), CHIPS)
def test_memory_and_power(name, gigabytes, terabytes_per_second, watts):
    chip = catalog.chip(name)
    assert chip.memory_size.value == pytest.approx(gigabytes * 1e9)
    assert chip.memory_bandwidth.value == pytest.approx(terabytes_per_second * 1e12)
    assert (chip.power and chip.power.value) == (None if watts is None else pytest.approx(watts))


@pytest.mark.parametrize(("name", "gigabytes_per_second"), LINKS)
def test_bandwidth_per_direction(name, gigabytes_per_second):
    assert catalog.link(name).bandwidth_per_direction == pytest.approx(gigabytes_per_second * 1e9, rel=2e-3)


def test_trainium_memory_is_binary():
    assert catalog.chip("Trainium2").memory_size.value == 96 * 2**30


def test_every_link_is_in_the_table_but_the_one_without_a_publisher():
    assert set(catalog.links()) - {name for name, _ in LINKS} == {"on-die"}


def test_ladder_of_tiers():
    """Per chip and direction: a factor of 5.6 from die to die to NVLink 5, of 9 from there to an XDR port."""
    ladder = ["die-to-die", "NVLink-5", "InfiniBand-XDR"]
    speeds = [catalog.link(name).bandwidth_per_direction for name in ladder]
    assert speeds[0] / speeds[1] == pytest.approx(10 / 1.8)
    assert speeds[1] / speeds[2] == pytest.approx(9)
    nvlink = [catalog.link(f"NVLink-{generation}").bandwidth_per_direction for generation in (3, 4, 5, 6)]
    assert [after / before for before, after in pairwise(nvlink)] == pytest.approx([1.5, 2, 2])
    # As vendors print them: the first two add both directions, the last does not.
    assert [catalog.link(name).bandwidth.text for name in ladder] == ["10 TB/s", "1.8 TB/s", "100 GB/s"]
    assert [catalog.link(name).duplex for name in ladder] == ["sum", "sum", "each"]


def test_nccl_latencies():
    """The protocol LL in NCCL's cost model: us per step on NVLink, PCIe and the network (ring)."""
    steps = {
        "NVLink-3": 0.6,
        "NVLink-4": 0.6,
        "NVLink-5": 0.6,
        "PCIe-4": 1.0,
        "PCIe-5": 1.0,
        "InfiniBand-HDR": 2.7,
        "InfiniBand-NDR": 2.7,
    }
    for name, microseconds in steps.items():
        assert catalog.link(name).latency.value == pytest.approx(microseconds * 1e-6)
        assert not catalog.link(name).latency.is_estimate


def test_fibre_sets_the_latency_between_sites():
    """Light takes 80 km in fibre of group index 1.468 at c / 1.468; equipment adds microseconds."""
    flight = 80e3 * 1.468 / 299_792_458
    for name in ("inter-site-400ZR", "inter-site-800ZR"):
        assert flight < catalog.link(name).latency.value < 1.05 * flight
