"""What the catalog knows of the media of links: copper's losses, and what each medium takes, reaches, and survives.

A figure here may have a range, since what is said of lengths of copper and of energies rests on a dozen of them that nobody
publishes exactly.
"""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mc.catalog.figure import Figure, LengthFigure, Text
from mc.document import StrictModel, located, read, validate
from mc.units import Dimension, UnitError, parse

_FILE = Path(__file__).parent / "data" / "media.yaml"


class RangedFigure(Figure):
    """A figure with the range that it may lie in.

    Attributes:
        low: the least, in the SI unit; the value where no range is known.
        high: the most.
    """

    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]

    @model_validator(mode="after")
    def _check_range(self) -> "RangedFigure":
        if not self.low <= self.value <= self.high:
            text = f"expected low <= value <= high; got {self.low:g}, {self.value:g}, {self.high:g}"
            raise located("RangedFigure", [((), text)])
        return self


def _of(dimension: Dimension) -> BeforeValidator:
    def read_figure(data: Any) -> Any:
        if not isinstance(data, dict) or "value" not in data:
            return data
        found = {"dimension": dimension, "low": data["value"], "high": data["value"], **data}
        for key in ("value", "low", "high"):
            try:
                # Numbers with an exponent are text in YAML 1.2's core schema where they lack a point.
                given = found[key]
                plain = dimension is Dimension.RATIO and isinstance(given, str)
                found[key] = float(given) if plain else parse(given, dimension)
            except (UnitError, ValueError) as error:
                raise located("RangedFigure", [((key,), str(error))]) from None
        return found

    return BeforeValidator(read_figure)


Number = Annotated[RangedFigure, _of(Dimension.RATIO)]
Energy = Annotated[RangedFigure, _of(Dimension.ENERGY_PER_BIT)]
Frequency = Annotated[RangedFigure, _of(Dimension.FREQUENCY)]
Duration = Annotated[RangedFigure, _of(Dimension.TIME)]
Rate = Annotated[float, BeforeValidator(lambda text: 8 * parse(text, Dimension.BANDWIDTH))]


class ChannelFigures(StrictModel):
    """A shielded pair and the transceivers at its ends; see `mc.optics.channel`."""

    thick: LengthFigure
    thin: LengthFigure
    impedance: Number
    crowding: Number
    permittivity: Number
    loss_tangent: Number
    connector: Number
    serdes_base: Energy
    serdes_slope: Energy


class PublishedReach(StrictModel):
    """How long passive cables are said to be: from metres that are always met to the longest sold."""

    least: Annotated[float, BeforeValidator(lambda text: parse(text, Dimension.LENGTH))]
    most: Annotated[float, BeforeValidator(lambda text: parse(text, Dimension.LENGTH))]
    source: Text


class LaneFigures(StrictModel):
    """One rate of a lane.

    Attributes:
        rate: bits/s.
        nyquist: hertz, half the symbols per second.
        budget: dB that a cable assembly may lose.
        host: dB that packages and boards at both ends lose beside.
        published: reach of passive cables; None where none is.
    """

    rate: Rate
    nyquist: Frequency
    budget: Number
    host: Number
    published: PublishedReach | None = None


class MediumFigures(StrictModel):
    """One medium.

    Attributes:
        id: its name.
        name: in full.
        kind: `passive` copper, an active `cable`, or `optics`.
        ends: joules per bit of one end by lane rate (bits/s); where a rate is missing that of the nearest counts.
        reach: metres; None for passive copper, whose budget decides.
        host_loss: dB from the chip to the medium at one end; None for passive copper.
        mtbf: seconds between failures of a link with both its ends.
    """

    id: Text
    name: Text
    kind: Literal["passive", "cable", "optics"]
    ends: dict[Text, Energy] = Field(default_factory=dict)
    reach: LengthFigure | None = None
    host_loss: Number | None = None
    mtbf: Duration

    def energy_of_end(self, rate: float) -> RangedFigure:
        """Joules per bit of one end, at the rate that is nearest on a logarithmic scale."""
        rates = {8 * parse(text, Dimension.BANDWIDTH): figure for text, figure in self.ends.items()}
        return rates[min(rates, key=lambda each: max(each / rate, rate / each))]


class MediaFile(StrictModel):
    """The content of `media.yaml`."""

    channel: ChannelFigures
    lanes: Annotated[tuple[LaneFigures, ...], Field(strict=False, min_length=1)]
    media: Annotated[tuple[MediumFigures, ...], Field(strict=False, min_length=1)]


@cache
def media() -> MediaFile:
    """All that is known of media."""
    return validate(read(_FILE), MediaFile)
