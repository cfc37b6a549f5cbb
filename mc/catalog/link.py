"""What the catalog knows of a link, from wires on the die to fibre between sites.

Vendors count bandwidth in two ways: NVLink's is that of both directions added, a network card's is that of
one. The catalog keeps the vendor's figure and says which it is (`duplex`); the figure per direction, the one
that counts everywhere else, is derived.
"""

from typing import Literal, get_args

from mc.catalog.figure import (
    BandwidthFigure,
    EnergyPerBitFigure,
    Figure,
    LengthFigure,
    PowerFigure,
    Text,
    TimeFigure,
)
from mc.catalog.protocol import ProtocolTable
from mc.document import StrictModel

Tier = Literal["on-die", "die-to-die", "scale-up", "host", "scale-out", "between-sites"]
# Innermost first.
TIERS: tuple[str, ...] = get_args(Tier)


class LinkFigures(StrictModel):
    """A kind of link.

    Attributes:
        id: the name that configurations use.
        name: the full name.
        tier: where it is found.
        per: what has the bandwidth: one chip with all its links of this kind, or one network card, slot,
            module or wavelength.
        bandwidth: the vendor's figure, bytes/s.
        duplex: `sum` if that figure adds both directions, `each` if it is one direction's.
        latency: seconds for one small message from rank to rank (see `docs/catalog.md`).
        energy_per_bit: joules for one bit over the link, both ends together, switches left out; None if no
            figure is known.
        adapter_power: of a network card without its module, watts; None for links inside of a node or rack.
        port_power: of one port of a switch without its module, watts; None likewise.
        reach: metres; None if it has no meaning.
        protocols: how communication libraries send over it; None if no library's constants are known. In the
            file the id of a table in `protocols.yaml`.
        note: what else a reader has to know.
    """

    id: Text
    name: Text
    tier: Tier
    per: Literal["die", "chip", "module", "slot", "NIC", "wavelength"]
    bandwidth: BandwidthFigure
    duplex: Literal["sum", "each"]
    latency: TimeFigure
    energy_per_bit: EnergyPerBitFigure | None = None
    adapter_power: PowerFigure | None = None
    port_power: PowerFigure | None = None
    reach: LengthFigure | None = None
    protocols: ProtocolTable | None = None
    note: Text | None = None

    @property
    def bandwidth_per_direction(self) -> float:
        """Bytes/s in one direction."""
        return self.bandwidth.value / 2 if self.duplex == "sum" else self.bandwidth.value

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure, by its name."""
        named = {
            "bandwidth": self.bandwidth,
            "latency": self.latency,
            "energy_per_bit": self.energy_per_bit,
            "adapter_power": self.adapter_power,
            "port_power": self.port_power,
            "reach": self.reach,
        }
        own = {key: figure for key, figure in named.items() if figure is not None}
        for each in () if self.protocols is None else self.protocols.protocols:
            own |= {f"protocols.{each.name}.{key}": figure for key, figure in each.figures.items()}
        return own
