"""From tier to tier, outwards: less bandwidth, more latency, more energy per bit.

The vendors' figures do not count alike: those of dies and of NVLink add both directions, a network card's is
one direction's. The ratio 18 of NVLink 5 to a network card is one of unlike things; per direction it is 9.
"""

import itertools

from experiments.claims.claim import Claim
from mc.catalog import LinkFigures, link

# Inside a package, a rack, a cluster.
OUTWARDS = ("die-to-die", "NVLink-5", "InfiniBand-XDR")
# TB/s, as the vendors count.
VENDOR_BANDWIDTH = {"die-to-die": 10.0, "NVLink-5": 1.8, "NVLink-6": 3.6, "InfiniBand-XDR": 0.1}
# Per pair of links: the ratio of the vendors' figures, and that of the bandwidths per direction.
BANDWIDTH_RATIOS = {
    ("die-to-die", "NVLink-5"): (5.6, 5.6),
    ("NVLink-5", "InfiniBand-XDR"): (18.0, 9.0),
    ("NVLink-6", "InfiniBand-XDR"): (36.0, 18.0),
}
# Per pair of links: how many times more latency, and energy per bit.
COST_RATIOS = {
    ("NVLink-5", "die-to-die"): (2.0, 15.0),
    ("InfiniBand-XDR", "NVLink-5"): (4.5, 6.25),
}
# The least that we call several times more.
SEVERAL = 2.0
# The energies and most of the latencies are estimates with two digits.
_TWO_DIGITS = 0.05


def claims(samples: int) -> list[Claim]:
    """Bandwidths, and what each tier out costs, from the catalog."""
    del samples
    found = [
        Claim(f"{name}: vendor's bandwidth, TB/s", expected, link(name).bandwidth.value / 1e12, 1e-9)
        for name, expected in VENDOR_BANDWIDTH.items()
    ]
    for (wide, narrow), (vendor, per_direction) in BANDWIDTH_RATIOS.items():
        first, second = link(wide), link(narrow)
        ratio = first.bandwidth.value / second.bandwidth.value
        found.append(Claim(f"{wide} over {narrow}: vendors' bandwidths", vendor, ratio, _TWO_DIGITS))
        ratio = first.bandwidth_per_direction / second.bandwidth_per_direction
        found.append(Claim(f"{wide} over {narrow}: per direction", per_direction, ratio, _TWO_DIGITS))
    for (outer, inner), (latency, energy) in COST_RATIOS.items():
        first, second = link(outer), link(inner)
        ratio = first.latency.value / second.latency.value
        found.append(Claim(f"{outer} over {inner}: latency", latency, ratio, _TWO_DIGITS))
        ratio = _energy(first) / _energy(second)
        found.append(Claim(f"{outer} over {inner}: energy per bit", energy, ratio, _TWO_DIGITS))
    outwards = [link(name) for name in OUTWARDS]
    steps = list(itertools.pairwise(outwards))
    cheap = sum(outer.latency.value < SEVERAL * inner.latency.value * (1 - 1e-9) for inner, outer in steps)
    cheap += sum(_energy(outer) < SEVERAL * _energy(inner) for inner, outer in steps)
    return [*found, Claim("latencies and energies that do not at least double from tier to tier", 0, cheap)]


def _energy(figures: LinkFigures) -> float:
    assert figures.energy_per_bit is not None
    return figures.energy_per_bit.value
