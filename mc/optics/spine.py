"""A rack whose chips are joined by copper, and what optics would take in its place.

With l links a chip, each of w lanes in either direction, every lane is one differential pair: 2·l·w pairs a chip, which in NVL72's
spine are cables of their own. Optics would have a module at the chip and one at the switch, each for the chip's bandwidth per
direction, and a module's energy per bit counts a bit out and one in as one. Transceivers of the chips are needed either way.
"""

from dataclasses import dataclass

from mc.catalog import link
from mc.optics.media import OpticsError


@dataclass(frozen=True)
class Spine:
    """The links of a rack.

    Attributes:
        chips: how many.
        links: of a chip.
        lanes: of a link in one direction.
        lane_rate: bits/s.
    """

    chips: int
    links: int
    lanes: int
    lane_rate: float

    def __post_init__(self):
        """All positive."""
        for name in ("chips", "links", "lanes", "lane_rate"):
            if not getattr(self, name) > 0:
                raise OpticsError(f"{name}: expected a number > 0; got {getattr(self, name)}")

    @property
    def pairs_per_chip(self) -> int:
        """Differential pairs, both directions."""
        return 2 * self.links * self.lanes

    @property
    def cables(self) -> int:
        """Pairs of all chips."""
        return self.chips * self.pairs_per_chip

    @property
    def rate(self) -> float:
        """bits/s of all chips in one direction."""
        return self.chips * self.links * self.lanes * self.lane_rate

    def power(self, energy_of_end: float) -> float:
        """Watts of modules at both ends, of so many joules per bit each."""
        return 2 * self.rate * energy_of_end

    def energy_of_end(self, power: float) -> float:
        """Joules per bit of one end that so many watts imply."""
        return power / (2 * self.rate)


def nvl72() -> Spine:
    """GB200 NVL72: 72 GPUs with 18 NVLinks of two lanes each way, which make the bandwidth of the catalog's NVLink 5."""
    lanes, links = 2, 18
    return Spine(72, links, lanes, 8 * link("NVLink-5").bandwidth_per_direction / (links * lanes))
