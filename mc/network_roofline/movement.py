"""How the ridge moved from one generation to another, and what moved it.

In the fastest format f of each generation the ridge is P_f/b = P_bf16 · (P_f/P_bf16) / b: what the silicon does in one and
the same format, what narrower numbers bring beyond, and the bandwidth b of the wires. So its logarithm moves by exactly

    Δ ln ridge = Δ ln P_bf16 + Δ ln (P_f/P_bf16) − Δ ln b,

and each term over the sum is its share: wires that gain have a negative one, since they take the ridge back. Per number
on the wire a fourth term joins, Δ ln w for the bytes of a number: none where gradients stay bf16.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mc.catalog import chip
from mc.network_roofline.ridge import TIERS, FabricTier, Ridge, fastest, link_of, ridge

# Chips of one vendor that followed one another as its largest for training.
LINEAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "NVIDIA": ("A100", "H100", "B200", "Rubin"),
        "AMD": ("MI300X", "MI355X"),
        "Google": ("TPU-v4", "TPU-v5p", "TPU-Ironwood"),
    }
)
BASE = "bf16"


@dataclass(frozen=True)
class Movement:
    """A move of the ridge of a tier, as natural logarithms that add up.

    Attributes:
        before: the ridge point of the earlier chip, in its fastest format.
        after: of the later one.
        silicon: what one format gained.
        formats: what narrower numbers brought beyond.
        wires: what the bandwidth gained; it counts against the ridge.
    """

    before: Ridge
    after: Ridge
    silicon: float
    formats: float
    wires: float

    @property
    def total(self) -> float:
        """Of the ridge per byte: silicon + formats − wires."""
        return self.silicon + self.formats - self.wires

    @property
    def factor(self) -> float:
        """The later ridge over the earlier one."""
        return math.exp(self.total)

    @property
    def shares(self) -> dict[str, float]:
        """Each term over the whole; they add up to 1. Empty if the ridge stayed."""
        if abs(self.total) < 1e-12:
            return {}
        terms = {"silicon": self.silicon, "formats": self.formats, "wires": -self.wires}
        return {name: term / self.total for name, term in terms.items()}


def movement(earlier: str, later: str, tier: FabricTier) -> Movement:
    """The move of a ridge between two chips of the catalog, both in their fastest formats.

    Raises:
        RidgeError: one has no link of the tier.
        UnknownName: there is no such chip.
    """
    one, other = chip(earlier), chip(later)
    before, after = (ridge(each, tier, fastest(each)) for each in (one, other))
    base = [ridge(each, tier, BASE).peak for each in (one, other)]
    return Movement(
        before,
        after,
        silicon=math.log(base[1] / base[0]),
        formats=math.log(after.peak / base[1]) - math.log(before.peak / base[0]),
        wires=math.log(after.bandwidth / before.bandwidth),
    )


def movements(tiers: tuple[FabricTier, ...] = TIERS) -> Iterator[Movement]:
    """All moves of a vendor's ridges from generation to generation, and from its first to its last."""
    for names in LINEAGES.values():
        for tier in tiers:
            if any(link_of(chip(name), tier) is None for name in names):
                continue
            yield from (movement(*pair, tier) for pair in itertools.pairwise(names))
            if len(names) > 2:
                yield movement(names[0], names[-1], tier)
