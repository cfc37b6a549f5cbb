"""One number of the catalog: a value in SI units and where it is from.

A figure has a `source` (the document that states it, or states what it is computed from) or an `estimate`
(why this value, and its range), and never both: a reader can tell at once what is published and what is ours.
Each field of an entry says which dimension its figures have, `BandwidthFigure` and so on, and text with a
unit is parsed on the way in.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from mc.document import StrictModel, located
from mc.units import Dimension, UnitError, format_quantity, parse

Text = Annotated[str, Field(min_length=1)]


class Figure(StrictModel):
    """A value with its origin.

    Attributes:
        value: in the SI unit of the dimension.
        dimension: what kind of quantity it is.
        source: the document it is from; None for an estimate.
        estimate: why this value was chosen and how far off it may be; None if there is a source.
    """

    value: Annotated[float, Field(gt=0)]
    dimension: Dimension
    source: Text | None = None
    estimate: Text | None = None

    @model_validator(mode="after")
    def _check_origin(self) -> "Figure":
        given = [key for key in ("source", "estimate") if getattr(self, key) is not None]
        if len(given) != 1:
            found = " and ".join(f"`{key}`" for key in given) or "neither"
            raise located("Figure", [((), f"expected either `source` or `estimate`; got {found}")])
        return self

    @property
    def is_estimate(self) -> bool:
        """Whether nobody published it."""
        return self.estimate is not None

    @property
    def origin(self) -> str:
        """The source, or the reasoning behind the estimate."""
        return self.source or self.estimate or ""

    @property
    def text(self) -> str:
        """The value with its unit, exactly: "3.35 TB/s"."""
        return format_quantity(self.value, self.dimension)


def _of(dimension: Dimension) -> BeforeValidator:
    """Parses the `value` of a figure in a file as a quantity of this dimension."""

    def read(data: Any) -> Any:
        if not isinstance(data, dict) or "value" not in data:
            return data
        try:
            value = parse(data["value"], dimension)
        except UnitError as error:
            raise located("Figure", [(("value",), str(error))]) from None
        # A dimension stated by the file stays, to be refused: the field decides it.
        return {"dimension": dimension, **data, "value": value}

    return BeforeValidator(read)


ComputeRateFigure = Annotated[Figure, _of(Dimension.COMPUTE_RATE)]
SizeFigure = Annotated[Figure, _of(Dimension.SIZE)]
BandwidthFigure = Annotated[Figure, _of(Dimension.BANDWIDTH)]
PowerFigure = Annotated[Figure, _of(Dimension.POWER)]
TimeFigure = Annotated[Figure, _of(Dimension.TIME)]
EnergyPerBitFigure = Annotated[Figure, _of(Dimension.ENERGY_PER_BIT)]
RatioFigure = Annotated[Figure, _of(Dimension.RATIO)]
LengthFigure = Annotated[Figure, _of(Dimension.LENGTH)]
