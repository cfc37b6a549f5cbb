"""The model file (what a step computes and exchanges) and the plan file (how it is spread over ranks)."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mc.config.checks import require_one_of
from mc.config.names import Algorithm, Collective, Format, Objective, SchemaVersion
from mc.config.protocol import AUTO, EVERY
from mc.config.quantities import Compute, Probability, Size, Time
from mc.document import StrictModel, located


class ComputeConfig(StrictModel):
    """A rank's compute per step.

    Either a time, or an amount of FLOP with the number format and the fraction of the peak that is reached.
    """

    time: Time | None = None
    flop: Compute | None = None
    format: Format | None = None
    efficiency: Annotated[Probability, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "ComputeConfig":
        require_one_of(self, ("time",), ("flop", "format", "efficiency"))
        return self


class ExchangeConfig(StrictModel):
    """What the ranks exchange after computing; `size` in bytes as nccl-tests counts it (the whole buffer)."""

    collective: Collective
    size: Size = 0.0

    @model_validator(mode="after")
    def _sized(self) -> "ExchangeConfig":
        if self.collective == "barrier" and self.size:
            raise located("ExchangeConfig", [(("size",), "a barrier carries no data; leave `size` out")])
        if self.collective != "barrier" and not self.size:
            message = f"expected a size such as 64 MiB; `{self.collective}` moves data"
            raise located("ExchangeConfig", [(("size",) if "size" in self.model_fields_set else (), message)])
        return self


class ModelConfig(StrictModel):
    """One training step of one rank."""

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)]
    compute: ComputeConfig
    exchange: ExchangeConfig


class PlanConfig(StrictModel):
    """How many ranks take part (`all` of the cluster or a number), and how they exchange.

    Attributes:
        ranks: how many.
        algorithm: a name, `hierarchical`, or `auto` for the fastest.
        objective: what `auto` goes by: the `floor` with links idle, or the `mean` or `p99` under their noise.
        protocol: a name from the links' tables, `auto` for the fastest, `none` for latency and bandwidth
            alone.
    """

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)] | None = None
    ranks: int | Literal["all"]
    algorithm: Algorithm = "auto"
    objective: Objective = "floor"
    protocol: Annotated[str, Field(min_length=1)] = AUTO

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, value: str) -> str:
        if value == EVERY:
            raise ValueError("expected one protocol, `auto` or `none`; got `all`")
        return value

    @field_validator("ranks", mode="before")
    @classmethod
    def _check_ranks(cls, value: Any) -> Any:
        if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            return value
        shown = repr(value) if not isinstance(value, dict | list) else "a collection"
        raise ValueError(f"expected `all` or a whole number of at least 1; got {shown}")
