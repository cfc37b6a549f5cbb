"""Field types: a text with a unit in the file, a float in SI units in the model.

`Time`, `Size` and so on are floats to Python. To pydantic they carry a `Quantity`, which parses on the way
in, formats on the way out (exactly, so that a printed configuration reloads to an equal one) and describes
itself in the JSON Schema.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mc.units import Dimension, format_quantity, parse, spellings

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"


@dataclass(frozen=True)
class Quantity:
    """Marks a float field as a quantity of a dimension."""

    dimension: Dimension

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda text: parse(text, self.dimension),
            core_schema.float_schema(strict=True, allow_inf_nan=False),
            serialization=core_schema.plain_serializer_function_ser_schema(self._write),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        dimension = self.dimension
        units = "|".join(re.escape(unit).replace("/", r"\/") for unit in spellings(dimension))
        text = {
            "type": "string",
            "pattern": rf"^{_NUMBER}\s*({units})$",
            "examples": list(dimension.examples),
        }
        described = {"description": f"A {dimension.value}, such as {', '.join(dimension.examples)}."}
        if dimension is Dimension.RATIO:
            return {"anyOf": [{"type": "number"}, text], **described}
        return {**text, **described}

    def _write(self, value: float) -> str | float:
        return value if self.dimension is Dimension.RATIO else format_quantity(value, self.dimension)


Time = Annotated[float, Quantity(Dimension.TIME), Field(ge=0)]
PositiveTime = Annotated[float, Quantity(Dimension.TIME), Field(gt=0)]
Size = Annotated[float, Quantity(Dimension.SIZE), Field(ge=0)]
PositiveSize = Annotated[float, Quantity(Dimension.SIZE), Field(gt=0)]
Bandwidth = Annotated[float, Quantity(Dimension.BANDWIDTH), Field(gt=0)]
EnergyPerBit = Annotated[float, Quantity(Dimension.ENERGY_PER_BIT), Field(ge=0)]
Power = Annotated[float, Quantity(Dimension.POWER), Field(gt=0)]
Length = Annotated[float, Quantity(Dimension.LENGTH), Field(gt=0)]
Compute = Annotated[float, Quantity(Dimension.COMPUTE), Field(gt=0)]
ComputeRate = Annotated[float, Quantity(Dimension.COMPUTE_RATE), Field(gt=0)]
Ratio = Annotated[float, Quantity(Dimension.RATIO), Field(ge=0)]
PositiveRatio = Annotated[float, Quantity(Dimension.RATIO), Field(gt=0)]
SignedRatio = Annotated[float, Quantity(Dimension.RATIO)]
Probability = Annotated[float, Quantity(Dimension.RATIO), Field(ge=0, le=1)]
Slowdown = Annotated[float, Quantity(Dimension.RATIO), Field(ge=1)]
