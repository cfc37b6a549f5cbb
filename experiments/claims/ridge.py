"""The network's roofline: how much a chip must compute per byte on the wire to keep up with its link.

The ridge point is peak FLOP/s over bandwidth per direction, FLOP per byte. It has grown from generation to
generation, in the fastest format of each. In one and the same format it has not always: Rubin's bf16 rate is
1.8 times Blackwell's, and its links are twice as fast.

What crosses the wire are numbers, and the wire's format is a choice of its own. Per number the ridge is that
per byte times the bytes of a number: gradients in bf16 (2 bytes) move it by 4 against fp4 (half a byte).
"""

from typing import Literal

import numpy as np

from experiments.claims.claim import Claim, falls
from mc.catalog import Chip, LinkFigures, chip, link
from mc.catalog.chip import NumberFormat

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
BYTES_PER_NUMBER: dict[NumberFormat, float] = {"fp32": 4, "bf16": 2, "fp8": 1, "fp4": 0.5}
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
# The figures are whole numbers.
_ROUNDING = 0.5


def ridge_point(
    of: Chip, over: LinkFigures, number_format: NumberFormat, *, wire: NumberFormat | None = None
) -> float:
    """FLOP that a chip computes while its link carries one byte, or one number of the format `wire`."""
    per_byte = of.peak[number_format].value / over.bandwidth_per_direction
    return per_byte if wire is None else per_byte * BYTES_PER_NUMBER[wire]


def claims(samples: int) -> list[Claim]:
    """Ridge points by chip, format and wire; how they grow."""
    del samples
    found = []
    for (name, number_format), expected in RIDGE.items():
        for kind, link_id, figure in zip(("scale-up", "scale-out"), GENERATIONS[name], expected, strict=True):
            text = f"ridge point, {name} {number_format} over {link_id} ({kind}), FLOP/byte"
            found.append(
                Claim(text, figure, ridge_point(chip(name), link(link_id), number_format), _ROUNDING)
            )
    for which, falling in FALLING.items():
        points = np.asarray([_over_both_links(name, which) for name in GENERATIONS])
        text = f"{which} format: ridge points that are lower than a generation before, of six"
        found.append(Claim(text, falling, falls(points)))
    blackwell, port = chip("B200"), link(GENERATIONS["B200"][1])
    for (number_format, wire), figure in WIRE_RIDGE.items():
        text = f"ridge point, B200 {number_format} with {wire} on the wire ({port.id}), FLOP/number"
        found.append(Claim(text, figure, ridge_point(blackwell, port, number_format, wire=wire), _ROUNDING))
    ratio = ridge_point(blackwell, port, "fp4", wire="bf16") / ridge_point(blackwell, port, "fp4", wire="fp4")
    return [*found, Claim("fp4 arithmetic: bf16 on the wire over fp4 on the wire", WIRE_FACTOR, ratio, 1e-9)]


def _over_both_links(name: str, which: Literal["fastest", "bf16"]) -> list[float]:
    """Ridge points of a chip over its scale-up and its scale-out link; the fastest is of floating point."""
    chosen = chip(name)
    formats: list[NumberFormat] = [each for each in chosen.peak if each != "int8"]
    best = max(formats, key=lambda each: chosen.peak[each].value)
    number_format = best if which == "fastest" else which
    return [ridge_point(chosen, link(each), number_format) for each in GENERATIONS[name]]
