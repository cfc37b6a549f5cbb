"""What an NVL72 rack saves by joining its 72 GPUs with copper.

A cable is one differential pair, in one direction: 18 NVLinks of two lanes each way are 72 pairs per GPU. With
pluggable optics each GPU's bandwidth per direction would pass a module at the GPU and one at the switch; a
module's energy per bit counts a bit each way as one. Electrical drivers are needed either way and do not enter.
"""

from experiments.claims.claim import Claim
from mc.catalog import link

GPUS, LINKS_PER_GPU, PAIRS_PER_LINK, PAIR_RATE = 72, 18, 4, 200e9  # bits/s of a pair
CABLES = 5184
RACK_TERABITS = 518.4  # per second, all GPUs, one direction
# NVIDIA's figure is round, "20 kW"; so is that per bit and end, 19 pJ.
OPTICS_KILOWATTS, KILOWATTS_TOLERANCE = 20.0, 1.0
PICOJOULES_PER_END, PICOJOULES_TOLERANCE = 19.0, 0.5


def claims(quick: bool) -> list[Claim]:
    """Cables, and the power of the optics that are not there."""
    del quick
    nvlink, pluggable = link("NVLink-5"), link("InfiniBand-XDR")
    assert pluggable.energy_per_bit is not None
    rate = GPUS * nvlink.bandwidth_per_direction * 8  # bits/s
    quoted = 2 * rate * PICOJOULES_PER_END * 1e-12
    catalog = rate * pluggable.energy_per_bit.value
    implied = OPTICS_KILOWATTS * 1e3 / (2 * rate) * 1e12
    kilowatts = "NVL72: power of pluggable optics, kW"
    return [
        Claim("NVL72: cables, from links and pairs", CABLES, GPUS * LINKS_PER_GPU * PAIRS_PER_LINK),
        Claim(
            "NVL72: cables, from NVLink 5's bandwidth at 200 Gb/s a pair", CABLES, 2 * rate / PAIR_RATE, 1e-6
        ),
        Claim("NVL72: rate of all GPUs per direction, Tb/s", RACK_TERABITS, rate / 1e12, 1e-6),
        Claim(f"{kilowatts}, at 19 pJ/bit at each end", OPTICS_KILOWATTS, quoted / 1e3, KILOWATTS_TOLERANCE),
        Claim(
            f"{kilowatts}, at the catalog's XDR modules", OPTICS_KILOWATTS, catalog / 1e3, KILOWATTS_TOLERANCE
        ),
        Claim(
            "NVL72: pJ/bit at each end that 20 kW imply", PICOJOULES_PER_END, implied, PICOJOULES_TOLERANCE
        ),
    ]
