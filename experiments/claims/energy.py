"""What a chip draws with all that it takes, and how many of them a gigawatt feeds.

Hand arithmetic on the powers of the catalog: a chip, its host, the modules at both ends of a link at its full rate, the ports and
the card, each over what shares it; then the budget over that and over the facility's overhead.
"""

from experiments.claims.claim import Claim
from mc.config import load_cluster
from mc.energy import Facility, chips_within, design

# 700 W and 385 W; 400 Gb/s of 45 pJ/bit, a port of 9 W and a card of 25 W; a seventh of that link with two ports.
H100_WATTS = 1142.142857
# 1.2 kW and 440 W; 17 W, 11.7 W and 25 W; half of 17 W and two ports; a sixteenth of the fibre between buildings with its ports.
GIGAWATT, OVERHEAD, REPLICA = 1e9, 1.2, 128
H100_CHIPS = 729_600
# 694 of NVIDIA's scalable units of 1.2 MW and 576 GPUs, in whole eighths; its provision is for more than the catalog's sum.
SITE_CHIPS, SITE_TOLERANCE = 396_288, 0.25 * 396_288
# NVIDIA's data sheets, at most: systems of eight chips. A host draws less than it may.
SYSTEMS = {"dgx-a100-superpod": 6.5, "dgx-h100-superpod": 10.2}
SYSTEM_TOLERANCE = 0.2
# QM9700: 747 W with passive cables for 64 ports.
SWITCH_WATTS, SWITCH_PORTS, SWITCH_TOLERANCE = 747.0, 64, 5.0


def claims(samples: int) -> list[Claim]:
    """Powers of chips, systems and switches, and what a gigawatt feeds."""
    del samples
    facility = Facility(GIGAWATT, OVERHEAD)
    llama = design(load_cluster("llama3-24k")).watts_per_rank
    site = design(load_cluster("gigawatt-site")).watts_per_rank
    port = load_cluster("dgx-h100-superpod").tiers[1].link.port_power
    assert port is not None
    found = [
        Claim("power of an H100 with host and network, W", H100_WATTS, llama, 1e-5),
        Claim(
            "H100s that 1 GW feeds at a PUE of 1.2, in replicas of 128",
            H100_CHIPS,
            chips_within(facility, llama, REPLICA),
        ),
        Claim(
            "GB200s of a site of 1 GW, against NVIDIA's provision",
            SITE_CHIPS,
            chips_within(facility, site, 72),
            SITE_TOLERANCE,
        ),
        Claim("power of a switch of 64 NDR ports, W", SWITCH_WATTS, SWITCH_PORTS * port, SWITCH_TOLERANCE),
    ]
    for name, kilowatts in SYSTEMS.items():
        drawn = design(load_cluster(name))
        eight = 8 * (drawn.idle + drawn.busy + drawn.host + 25) / 1e3
        found.append(
            Claim(f"{name}: a system of eight, kW at most", kilowatts, eight, SYSTEM_TOLERANCE * kilowatts)
        )
    return found
