"""Chips and links, inline or by their id in the catalog.

An id becomes the catalog's figures as the file is read: the resolved configuration carries numbers, so a
result can be understood (and its hash depends on what was simulated) whatever becomes of the catalog.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema

from mc.config import from_catalog
from mc.config.efficiency import EfficiencyConfig
from mc.config.protocol import ProtocolConfig, check_protocols
from mc.config.quantities import Bandwidth, ComputeRate, EnergyPerBit, Length, PositiveSize, Power, Time
from mc.document import StrictModel, located


class LinkConfig(StrictModel):
    """What joins the units of a tier.

    Attributes:
        name: for people; the catalog id where it came from there.
        bandwidth: bytes/s of one link of one chip, counted as `duplex` says.
        duplex: `each` if the bandwidth is that of one direction, `sum` if it adds both.
        latency: seconds from sender to receiver for a message of no size.
        energy: joules per bit moved.
        adapter_power: watts of a network card, without its module; None where chips or hosts have it.
        port_power: watts of one port of a switch, without its module; None where hosts have the switches, if there are any.
        reach: metres.
        protocols: the ways to send over it, of which a collective takes the fastest; without any, the link is
            one line of latency and bandwidth.
    """

    name: str | None = None
    bandwidth: Bandwidth
    duplex: Literal["each", "sum"]
    latency: Time
    energy: EnergyPerBit | None = None
    adapter_power: Power | None = None
    port_power: Power | None = None
    reach: Length | None = None
    protocols: Annotated[tuple[ProtocolConfig, ...], Field(strict=False, min_length=1)] | None = None

    @model_validator(mode="after")
    def _check_protocols(self) -> "LinkConfig":
        found = check_protocols(self.protocols or ())
        if found:
            raise located("LinkConfig", found)
        return self

    @property
    def bandwidth_per_direction(self) -> float:
        """Bytes/s in one direction."""
        return self.bandwidth / 2 if self.duplex == "sum" else self.bandwidth


class PeakConfig(StrictModel):
    """Dense peak rate per number format, FLOP/s (operations/s for integers).

    A format that is left out is not offered.
    """

    fp64: ComputeRate | None = None
    fp32: ComputeRate | None = None
    tf32: ComputeRate | None = None
    bf16: ComputeRate | None = None
    fp16: ComputeRate | None = None
    fp8: ComputeRate | None = None
    fp4: ComputeRate | None = None
    int8: ComputeRate | None = None

    @property
    def offered(self) -> dict[str, float]:
        """Format -> FLOP/s, of those offered."""
        return {name: rate for name, rate in self if rate is not None}


class ChipConfig(StrictModel):
    """An accelerator: what a rank is.

    Attributes:
        name: for people; the catalog id where it came from there.
        peak: dense peak rates.
        memory_size: bytes.
        memory_bandwidth: bytes/s.
        power: watts while it computes.
        idle_power: watts while it waits.
        host_power: watts of the rest of its node or rack, for one chip, without network cards.
        efficiency: what is reached of the peaks; the defaults of `EfficiencyConfig` if left out.
    """

    name: str | None = None
    peak: PeakConfig
    memory_size: PositiveSize | None = None
    memory_bandwidth: Bandwidth | None = None
    power: Power | None = None
    idle_power: Power | None = None
    host_power: Power | None = None
    efficiency: EfficiencyConfig | None = None


@dataclass(frozen=True)
class CatalogId:
    """Marks a field that also takes the id of a catalog entry."""

    kind: Literal["chip", "link"]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._look_up, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        ids = {
            "type": "string",
            "enum": from_catalog.ids(self.kind),
            "description": f"A {self.kind} of the catalog.",
        }
        return {"anyOf": [ids, handler(schema)]}

    def _look_up(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        figures = from_catalog.figures(self.kind, value)
        if isinstance(figures, str):
            raise located(self.kind, [((), figures)])
        return (LinkConfig if self.kind == "link" else ChipConfig).model_validate(figures)


Link = Annotated[LinkConfig, CatalogId("link")]
Chip = Annotated[ChipConfig, CatalogId("chip")]
