"""The network's roofline: how much a chip must compute per byte on the wire to keep up with its link.

The ridge point is peak FLOP/s over bandwidth per direction, FLOP per byte. It has grown from generation to
generation, in the fastest format of each. In one and the same format it has not always: Rubin's bf16 rate is
1.8 times Blackwell's, and its links are twice as fast.

What crosses the wire are numbers, and the wire's format is a choice of its own. Per number the ridge is that
per byte times the bytes of a number: gradients in bf16 (2 bytes) move it by 4 against fp4 (half a byte).

Why it moved: ln ridge = ln P_bf16 + ln (P_f/P_bf16) − ln b, so factors of one format, of narrower formats and of the wires.
"""

import math
from typing import Literal

import numpy as np

from experiments.claims.claim import Claim, falls
from mc.catalog import chip
from mc.catalog.chip import NumberFormat
from mc.network_roofline import TIERS, fastest, movement, ridge

# Chip -> scale-up link, scale-out link (one network port of the generation).
GENERATIONS = {
    "A100": ("NVLink-3", "InfiniBand-HDR"),
    "H100": ("NVLink-4", "InfiniBand-NDR"),
    "B200": ("NVLink-5", "InfiniBand-NDR"),
    "Rubin": ("NVLink-6", "InfiniBand-XDR"),
}
# (chip, format of the arithmetic) -> FLOP per byte over the scale-up link and over one network port.
RIDGE: dict[tuple[str, NumberFormat], tuple[float, float]] = {
    ("A100", "bf16"): (1040, 12_480),
    ("H100", "bf16"): (2198, 19_780),
    ("H100", "fp8"): (4398, 39_580),
    ("B200", "bf16"): (2500, 45_000),
    ("B200", "fp8"): (5000, 90_000),
    ("B200", "fp4"): (10_000, 180_000),
    ("Rubin", "bf16"): (2222, 40_000),
    ("Rubin", "fp8"): (9722, 175_000),
    ("Rubin", "fp4"): (19_444, 350_000),
}
# (arithmetic, wire) -> FLOP per number on the wire, B200 over one network port.
WIRE_RIDGE: dict[tuple[NumberFormat, NumberFormat], float] = {
    ("bf16", "bf16"): 90_000,
    ("fp8", "bf16"): 180_000,
    ("fp4", "fp4"): 90_000,
    ("fp4", "fp8"): 180_000,
    ("fp4", "bf16"): 360_000,
}
WIRE_FACTOR = 4.0
# Format -> how many of six ridge points (three changes of generation, two links) fell; in bf16 Rubin's two.
FALLING: dict[Literal["fastest", "bf16"], int] = {"fastest": 0, "bf16": 2}
# A100 to Rubin: factors of bf16, 4000/312, of narrower formats, 35/4, and of the wires, 1800/300 and 100/25.
MOVES = {"scale-up": (12.82, 8.75, 6.0, 18.70), "scale-out": (12.82, 8.75, 4.0, 28.04)}
# The figures are whole numbers.
_ROUNDING = 0.5
_FACTOR_ROUNDING = 0.005


def claims(samples: int) -> list[Claim]:
    """Ridge points by chip, format and wire; how they grow."""
    del samples
    found = []
    for (name, number_format), expected in RIDGE.items():
        for tier, link_id, figure in zip(TIERS, GENERATIONS[name], expected, strict=True):
            text = f"ridge point, {name} {number_format} over {link_id} ({tier}), FLOP/byte"
            point = ridge(chip(name), tier, number_format)
            assert point.link == link_id
            found.append(Claim(text, figure, point.per_byte, _ROUNDING))
    for which, falling in FALLING.items():
        points = np.asarray([_over_both_links(name, which) for name in GENERATIONS])
        text = f"{which} format: ridge points that are lower than a generation before, of six"
        found.append(Claim(text, falling, falls(points)))
    blackwell = chip("B200")
    for (number_format, wire), figure in WIRE_RIDGE.items():
        point = ridge(blackwell, "scale-out", number_format, wire)
        text = f"ridge point, B200 {number_format} with {wire} on the wire ({point.link}), FLOP/number"
        found.append(Claim(text, figure, point.per_number, _ROUNDING))
    ratio = ridge(blackwell, "scale-out", "fp4", "bf16").over_own_format
    found.append(Claim("fp4 arithmetic: bf16 on the wire over fp4 on the wire", WIRE_FACTOR, ratio, 1e-9))
    return [*found, *_moves()]


def _moves() -> list[Claim]:
    found = []
    for tier in TIERS:
        moved = movement("A100", "Rubin", tier)
        terms = (moved.silicon, moved.formats, moved.wires, moved.total)
        names = ("bf16 alone", "narrower formats beyond", "wires, which take it back", "in all")
        for name, expected, term in zip(names, MOVES[tier], terms, strict=True):
            text = f"ridge of A100 to Rubin, {tier}: factor, {name}"
            found.append(Claim(text, expected, math.exp(term), _FACTOR_ROUNDING))
        found.append(
            Claim(f"ridge of A100 to Rubin, {tier}: shares add up to", 1, sum(moved.shares.values()), 1e-12)
        )
    return found


def _over_both_links(name: str, which: Literal["fastest", "bf16"]) -> list[float]:
    """Ridge points of a chip over its scale-up and its scale-out link; the fastest is of floating point."""
    chosen = chip(name)
    number_format = fastest(chosen) if which == "fastest" else which
    return [ridge(chosen, tier, number_format).per_byte for tier in TIERS]
