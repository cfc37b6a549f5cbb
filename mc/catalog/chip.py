"""What the catalog knows of a chip: the accelerator that a collective sees as one rank."""

from typing import Annotated, Literal

from pydantic import Field

from mc.catalog.efficiency import EfficiencyFigures
from mc.catalog.figure import BandwidthFigure, ComputeRateFigure, Figure, PowerFigure, SizeFigure, Text
from mc.document import StrictModel

NumberFormat = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]


class Chip(StrictModel):
    """An accelerator.

    Attributes:
        id: the name that configurations use.
        name: the product's full name.
        vendor: who sells it.
        year: when it became available, or is announced for.
        peak: dense peak rate per number format, FLOP/s (operations/s for integers); a format
            left out is not offered or not published.
        memory_size: bytes.
        memory_bandwidth: bytes/s.
        power: design power of the chip or module, watts; None if no figure is known.
        idle_power: what it draws while it waits, watts; None likewise.
        host_power: what the rest of its node or rack draws for each chip, without network cards, watts; None likewise.
        efficiency: what is reached of the peaks, the set of its generation; None if nobody fitted one.
        scale_up_link: id of the link that joins the chips of a node, rack or pod.
        scale_out_link: id of the network link that such chips usually come with; None if there
            is no usual one.
        note: what else a reader has to know.
    """

    id: Text
    name: Text
    vendor: Text
    year: Annotated[int, Field(ge=2016, le=2100)]
    peak: Annotated[dict[NumberFormat, ComputeRateFigure], Field(min_length=1)]
    memory_size: SizeFigure
    memory_bandwidth: BandwidthFigure
    power: PowerFigure | None = None
    idle_power: PowerFigure | None = None
    host_power: PowerFigure | None = None
    efficiency: EfficiencyFigures | None = None
    scale_up_link: Text | None = None
    scale_out_link: Text | None = None
    note: Text | None = None

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure, by its dotted path such as `peak.bf16`."""
        named = {
            "memory_size": self.memory_size,
            "memory_bandwidth": self.memory_bandwidth,
            "power": self.power,
            "idle_power": self.idle_power,
            "host_power": self.host_power,
        }
        peaks = {f"peak.{number_format}": figure for number_format, figure in self.peak.items()}
        reached = {} if self.efficiency is None else self.efficiency.figures
        return (
            peaks
            | {key: figure for key, figure in named.items() if figure is not None}
            | {f"efficiency.{key}": figure for key, figure in reached.items()}
        )
