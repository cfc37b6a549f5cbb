"""What an NVL72 rack saves by joining its 72 GPUs with copper.

A cable is one differential pair, in one direction: 18 NVLinks of two lanes each way are 72 pairs per GPU.
With pluggable optics each GPU's bandwidth per direction would pass a module at the GPU and one at the switch;
a module's energy per bit counts a bit out and one in as one. Electrical drivers are needed either way and do
not enter.
"""

from experiments.claims.claim import Claim
from mc.catalog import link
from mc.config import load_cluster

PAIR_RATE = 200e9  # bits/s
# 18 links of 4 pairs each; 72 GPUs.
PAIRS_PER_GPU, CABLES = 72, 5184
RACK_TERABITS = 518.4  # per second, all GPUs, one direction
# NVIDIA's figure is round, "20 kW"; so is that per bit and end, 19 pJ.
OPTICS_KILOWATTS, KILOWATTS_TOLERANCE = 20.0, 1.0
PICOJOULES_PER_END, PICOJOULES_TOLERANCE = 19.0, 0.5


def claims(samples: int) -> list[Claim]:
    """Cables, and the power of the optics that are not there."""
    del samples
    rack = load_cluster("gb200-nvl72-scale-out").tiers[0]
    per_gpu = rack.bandwidth_per_rank * 8  # bits/s in one direction
    rate = rack.fan_out * per_gpu
    pairs = 2 * per_gpu / PAIR_RATE
    pluggable = link("InfiniBand-XDR").energy_per_bit
    assert pluggable is not None
    quoted = 2 * rate * PICOJOULES_PER_END * 1e-12
    implied = OPTICS_KILOWATTS * 1e3 / (2 * rate) * 1e12
    power = "NVL72: power of pluggable optics, kW"
    return [
        Claim("NVL72: pairs per GPU at 200 Gb/s a pair", PAIRS_PER_GPU, pairs, 1e-9),
        Claim("NVL72: cables of one pair", CABLES, rack.fan_out * pairs, 1e-6),
        Claim("NVL72: rate of all GPUs per direction, Tb/s", RACK_TERABITS, rate / 1e12, 1e-6),
        Claim(f"{power}, at 19 pJ/bit at each end", OPTICS_KILOWATTS, quoted / 1e3, KILOWATTS_TOLERANCE),
        Claim(
            f"{power}, with the catalog's XDR modules",
            OPTICS_KILOWATTS,
            rate * pluggable.value / 1e3,
            KILOWATTS_TOLERANCE,
        ),
        Claim(
            "NVL72: pJ/bit at each end that 20 kW imply", PICOJOULES_PER_END, implied, PICOJOULES_TOLERANCE
        ),
    ]
