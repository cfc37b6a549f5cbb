"""Ridge points: peak FLOP/s over bandwidth per direction, FLOP per byte on the wire.

Below it a fabric cannot feed the chip (S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009, with a link in
the place of memory). What crosses a wire are numbers, whose format is a choice of its own: the ridge per number is that per
byte times the bytes of a number. A vendor's table that has bytes and arithmetic in one format suggests the ridge of
fp4 on an fp4 wire; gradients in bf16 move it by 2/0.5 = 4. Scale factors of block formats are left out.

Over scale-out links a chip is taken to have one port of the link that usually comes with it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from mc.catalog import Chip, LinkFigures, chips, link
from mc.catalog.chip import NumberFormat
from mc.config.names import FORMAT_BYTES
from mc.errors import InputError

FabricTier = Literal["scale-up", "scale-out"]
TIERS: tuple[FabricTier, ...] = get_args(FabricTier)
# In which transformers are multiplied, and in which their numbers are sent.
ARITHMETIC: tuple[NumberFormat, ...] = ("bf16", "fp8", "fp4")
WIRES: tuple[NumberFormat, ...] = ("fp32", "bf16", "fp8", "fp4")


class RidgeError(InputError):
    """A chip has no such format or link."""


@dataclass(frozen=True)
class Ridge:
    """The ridge point of a chip, a format and a link.

    Attributes:
        chip: id in the catalog.
        year: of the chip.
        number_format: of the arithmetic.
        wire: format of the numbers on the wire.
        tier: scale-up or scale-out.
        link: id in the catalog.
        peak: dense, FLOP/s.
        bandwidth: bytes/s in one direction.
    """

    chip: str
    year: int
    number_format: NumberFormat
    wire: NumberFormat
    tier: FabricTier
    link: str
    peak: float
    bandwidth: float

    @property
    def per_byte(self) -> float:
        """FLOP for each byte on the wire."""
        return self.peak / self.bandwidth

    @property
    def per_number(self) -> float:
        """FLOP for each number on the wire."""
        return self.per_byte * FORMAT_BYTES[self.wire]

    @property
    def over_own_format(self) -> float:
        """The ridge per number over that with the wire in the format of the arithmetic."""
        return FORMAT_BYTES[self.wire] / FORMAT_BYTES[self.number_format]


def link_of(chip: Chip, tier: FabricTier) -> LinkFigures | None:
    """The link that a chip usually has on a tier; None if there is none."""
    name = chip.scale_up_link if tier == "scale-up" else chip.scale_out_link
    return None if name is None else link(name)


def fastest(chip: Chip) -> NumberFormat:
    """The format of floating point that a chip multiplies fastest; of two that are as fast, the wider."""
    formats: list[NumberFormat] = [each for each in chip.peak if each != "int8"]
    return max(formats, key=lambda each: (chip.peak[each].value, FORMAT_BYTES[each]))


def ridge(chip: Chip, tier: FabricTier, number_format: NumberFormat, wire: NumberFormat = "bf16") -> Ridge:
    """The ridge point of a chip.

    Raises:
        RidgeError: the chip does not have the format, or no link of the tier.
    """
    over = link_of(chip, tier)
    if over is None:
        raise RidgeError(f"expected a chip with a {tier} link; {chip.id} has none in the catalog")
    if number_format not in chip.peak:
        offered = ", ".join(chip.peak)
        raise RidgeError(f"expected a number format that {chip.id} has ({offered}); got {number_format}")
    peak = chip.peak[number_format].value
    return Ridge(chip.id, chip.year, number_format, wire, tier, over.id, peak, over.bandwidth_per_direction)


def ridges(
    names: Iterable[Chip] | None = None,
    formats: Iterable[NumberFormat] = ARITHMETIC,
    wires: Iterable[NumberFormat] = ("bf16",),
    tiers: Iterable[FabricTier] = TIERS,
) -> Iterator[Ridge]:
    """Every ridge point there is among chips, formats, wires and tiers."""
    formats, wires, tiers = list(formats), list(wires), list(tiers)
    for chip in chips().values() if names is None else names:
        for tier in tiers:
            if link_of(chip, tier) is None:
                continue
            for number_format in formats:
                if number_format in chip.peak:
                    yield from (ridge(chip, tier, number_format, wire) for wire in wires)
