"""What an NVL72 rack saves by joining its 72 GPUs with copper.

A cable is one differential pair, in one direction: 18 NVLinks of two lanes each way are 72 pairs per GPU.
With pluggable optics each GPU's bandwidth per direction would pass a module at the GPU and one at the switch;
a module's energy per bit counts a bit out and one in as one. Electrical drivers are needed either way and do
not enter.
"""

from experiments.claims.claim import Claim
from mc.catalog import link
from mc.catalog.media import media
from mc.config import load_cluster
from mc.optics import compare, nvl72, passive_reach

PAIR_RATE = 200e9  # bits/s
# 18 links of 4 pairs each; 72 GPUs.
PAIRS_PER_GPU, CABLES = 72, 5184
RACK_TERABITS = 518.4  # per second, all GPUs, one direction
# NVIDIA's figure is round, "20 kW"; so is that per bit and end, 19 pJ.
OPTICS_KILOWATTS, KILOWATTS_TOLERANCE = 20.0, 1.0
PICOJOULES_PER_END, PICOJOULES_TOLERANCE = 19.0, 0.5
# Lane rate in Gb/s -> metres of passive copper that are sold at most, against thick wire; within a third of it.
COPPER_REACH = {25: 5.0, 50: 3.0, 100: 3.0, 200: 1.25}
REACH_TOLERANCE = 1 / 3


def claims(samples: int) -> list[Claim]:
    """Cables, and the power of the optics that are not there."""
    del samples
    rack, spine = load_cluster("gb200-nvl72-scale-out").tiers[0], nvl72()
    assert (rack.fan_out, rack.bandwidth_per_rank) == (spine.chips, spine.rate / spine.chips / 8)
    pluggable = link("InfiniBand-XDR").energy_per_bit
    assert pluggable is not None
    # A link has two modules.
    quoted, with_catalog = (spine.power(each) for each in (PICOJOULES_PER_END * 1e-12, pluggable.value / 2))
    implied = spine.energy_of_end(OPTICS_KILOWATTS * 1e3) * 1e12
    power = "NVL72: power of pluggable optics, kW"
    return [
        Claim("NVL72: pairs per GPU at 200 Gb/s a pair", PAIRS_PER_GPU, spine.pairs_per_chip),
        Claim("NVL72: rate of a pair, Gb/s", PAIR_RATE / 1e9, spine.lane_rate / 1e9, 1e-9),
        Claim("NVL72: cables of one pair", CABLES, spine.cables),
        Claim("NVL72: rate of all GPUs per direction, Tb/s", RACK_TERABITS, spine.rate / 1e12, 1e-6),
        Claim(f"{power}, at 19 pJ/bit at each end", OPTICS_KILOWATTS, quoted / 1e3, KILOWATTS_TOLERANCE),
        Claim(
            f"{power}, with the catalog's XDR modules",
            OPTICS_KILOWATTS,
            with_catalog / 1e3,
            KILOWATTS_TOLERANCE,
        ),
        Claim(
            "NVL72: pJ/bit at each end that 20 kW imply", PICOJOULES_PER_END, implied, PICOJOULES_TOLERANCE
        ),
        *_copper(),
    ]


def _copper() -> list[Claim]:
    """Reach of passive copper, and that it takes the least energy wherever it reaches."""
    found = [
        Claim(
            f"reach of passive copper at {rate} Gb/s a lane, m",
            metres,
            passive_reach(rate * 1e9).value,
            REACH_TOLERANCE * metres,
        )
        for rate, metres in COPPER_REACH.items()
    ]
    beaten = 0
    for lane in media().lanes:
        reach = passive_reach(lane.rate).value
        copper, *others = (each.energy for each in compare(lane.rate, 0.999 * reach))
        assert copper is not None
        beaten += sum(other is not None and other.value < copper.value for other in others)
    return [*found, Claim("media that take less than passive copper where it reaches", 0, beaten)]
