"""Units of a tier that differ from the others: of another size, slower, or of another generation.

`units: 5` is one of them, `units: 4-7` or `units: [0, 4-7]` are several, counted through the whole cluster
from 0.
"""

import itertools
import re
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from mc.config.congestion import Name
from mc.config.hardware import Chip, Link
from mc.config.quantities import PositiveRatio
from mc.document import StrictModel, located

_RANGE = re.compile(r"\s*([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")
_MOST = 10_000_000
_EXPECTED = "expected a number, a range such as 4-7, or a list of them"


def _parse(value: Any) -> tuple[int, ...]:
    found: list[int] = []
    for each in value if isinstance(value, list | tuple) else [value]:
        if isinstance(each, int) and not isinstance(each, bool) and each >= 0:
            found.append(each)
            continue
        match = _RANGE.fullmatch(each) if isinstance(each, str) else None
        if match is None:
            raise ValueError(f"{_EXPECTED}; got {each!r}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first or last - first >= _MOST:
            raise ValueError(f"{_EXPECTED}; got {each!r}")
        found += range(first, last + 1)
    if not found:
        raise ValueError(f"{_EXPECTED}; got none")
    if len(set(found)) < len(found):
        again = next(each for place, each in enumerate(sorted(found)) if sorted(found)[place + 1] == each)
        raise ValueError(f"expected each unit once; got {again} twice")
    return tuple(sorted(found))


def ranges(units: tuple[int, ...]) -> list[int | str]:
    """Units as they are written: single ones as numbers, neighbours as `4-7`."""
    found: list[int | str] = []
    for _, run in itertools.groupby(enumerate(units), lambda pair: pair[1] - pair[0]):
        members = [unit for _, unit in run]
        found.append(members[0] if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return found


class _Units:
    """Marks a tuple of unit numbers that is written in ranges."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(
            _parse, serialization=core_schema.plain_serializer_function_ser_schema(ranges)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        del schema, handler
        one = {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+-[0-9]+$"}]
        }
        return {
            "anyOf": [*one["anyOf"], {"type": "array", "items": one, "minItems": 1}],
            "description": "Units, counted through the whole cluster from 0: 5, 4-7, or [0, 4-7].",
        }


class ExceptionConfig(StrictModel):
    """Units that differ.

    Attributes:
        units: which, counted through the whole cluster from 0.
        of: whose units they are: this tier's, which is the default, those of a tier further inside, or `rank`
            for single ranks. What differs is what their ranks have on this tier: on the tier of racks, `of:
            rack` is about links inside a rack; on the tier that joins racks, about a rack's way out.
        fan_out: how many units of the tier below they join; of this tier's units only.
        link: what joins their parts instead. Its latency and bandwidth count.
        latency_factor: on the latency of their links.
        bandwidth_factor: on the bandwidth of their links.
        chip: what their ranks are instead.
        slowdown: their ranks compute so many times longer than their chip says.
    """

    units: Annotated[tuple[int, ...], _Units()]
    of: Name | None = None
    fan_out: Annotated[int, Field(ge=1)] | None = None
    link: Link | None = None
    latency_factor: PositiveRatio = 1.0
    bandwidth_factor: PositiveRatio = 1.0
    chip: Chip | None = None
    slowdown: PositiveRatio = 1.0

    @model_validator(mode="after")
    def _says_something(self) -> "ExceptionConfig":
        factors = (self.latency_factor, self.bandwidth_factor, self.slowdown)
        if self.fan_out is self.link is self.chip is None and factors == (1.0, 1.0, 1.0):
            text = (
                "expected what differs: one of `fan_out`, `link`, `latency_factor`, `bandwidth_factor`, "
                "`chip` and `slowdown`; got none"
            )
            raise located("ExceptionConfig", [((), text)])
        return self
