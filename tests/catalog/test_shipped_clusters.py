"""The clusters that come with tailstep: they load, and have the size that their publishers state."""

from pathlib import Path

import pytest

from mc import catalog
from mc.config import load_cluster
from mc.config.shape import TorusConfig

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "clusters"
# name, chips, chip, where the size is stated.
PUBLISHED = [
    ("dgx-a100-superpod", 1120, "A100", "NVIDIA RA-09950-001: 140 systems of 8"),
    ("dgx-h100-superpod", 1024, "H100", "NVIDIA RA-11333-001: 4 units of 32 systems of 8"),
    ("gb200-nvl72-scale-out", 9216, "GB200", "NVIDIA DGX GB200 reference architecture: 128 racks"),
    ("tpu-v5p-pod", 8960, "TPU-v5p", "Google Cloud documentation: 8,960 chips"),
    ("fabric-100k", 98_304, "H100", "four times the 24,576 of the cluster in the Llama 3 paper"),
    ("gigawatt-site", 396_288, "GB200", "688 units of 576"),
    ("tpu-v4-4x4x4", 64, "TPU-v4", "Google Cloud documentation: a cube"),
    ("tpu-v5e-16x16", 256, "TPU-v5e", "Google Cloud documentation: a pod"),
    ("tpu-v5e-multislice", 1024, "TPU-v5e", "four pods"),
    ("tpu-v5p-8x8x16", 1024, "TPU-v5p", "Google Cloud documentation: v5p-2048 counts cores, two to a chip"),
    ("tpu-v6e-16x16", 256, "TPU-v6e", "Google Cloud documentation: a pod"),
    ("mi300x-node", 8, "MI300X", "AMD Instinct MI300X platform data sheet"),
    ("llama3-24k", 24_576, "H100", "arXiv 2407.21783, section 3.3.1"),
    ("selene-3072", 3072, "A100", "arXiv 2104.04473, table 1: 3,072 GPUs"),
    ("h800-2048", 2048, "H100", "arXiv 2412.19437, section 3.1: 2,048 H800s"),
    ("mixed-generations", 247, "H100", "31 nodes of 8, one GPU missing"),
]


@pytest.mark.parametrize(("name", "size", "chip", "stated"), PUBLISHED)
def test_size(name, size, chip, stated):
    cluster = load_cluster(FOLDER / f"{name}.yaml")
    assert (cluster.size, cluster.chip.name) == (size, chip), stated


def test_all_files_are_in_the_table():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {name for name, *_ in PUBLISHED}


@pytest.mark.parametrize("name", [name for name, *_ in PUBLISHED])
def test_clusters_by_name(name):
    cluster = load_cluster(name)
    # Outwards a rank never gets more bandwidth.
    speeds = [tier.bandwidth_per_rank for tier in cluster.tiers]
    assert speeds == sorted(speeds, reverse=True)
    if name != "h800-2048":  # whose NVLink is slower than the chip's usual one
        assert cluster.tiers[0].link.name == catalog.chip(str(cluster.chip.name)).scale_up_link
    # Healthy chips scatter by no more than the 2.8 % that was measured.
    assert cluster.noise.spread is not None
    assert cluster.noise.spread.sigma <= 0.028
    assert cluster.noise.slow_chips is not None


def test_gigawatt_site_stays_within_a_gigawatt():
    """1.2 MW for a unit of 576 chips, and a PUE of 1.2; one more unit in each building would not fit."""
    units = load_cluster("gigawatt-site").size / 576
    assert units * 1.2e6 * 1.2 <= 1e9 < (units + 8) * 1.2e6 * 1.2


@pytest.mark.parametrize("name", ["tpu-v4-4x4x4", "tpu-v5p-8x8x16", "tpu-v5p-pod"])
def test_slices_of_whole_cubes_wrap_around(name):
    """Google Cloud documentation: a torus where every extent is a multiple of 4, which is the side of a cube."""
    (tier,) = load_cluster(name).tiers
    assert isinstance(tier.shape, TorusConfig)
    assert all(extent % 4 == 0 for extent in tier.shape.dims)
    assert all(tier.shape.wraps)


def test_the_largest_job_by_override():
    """What the comment in the file promises."""
    config = load_cluster("tpu-v5p-pod", ["tiers.0.fan_out=6144", "tiers.0.shape.dims=16x16x24"])
    assert config.size == 96 * 4**3


def test_xdr_by_override():
    """What the comment in the file promises."""
    overrides = [f"tiers.{index}.link.bandwidth=800 Gb/s" for index in (1, 2)]
    cluster = load_cluster("gb200-nvl72-scale-out", overrides)
    assert [tier.bandwidth_per_rank for tier in cluster.tiers] == [9e11, 1e11, 1e11]
