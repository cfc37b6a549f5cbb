"""The model file: what a step computes and exchanges."""

from typing import Annotated

from pydantic import Field, model_validator

from mc.config.checks import require_one_of
from mc.config.names import Collective, Format, SchemaVersion
from mc.config.quantities import Compute, Probability, Size, Time
from mc.config.transformer import TransformerConfig
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
    """What a training step has to do: the shape of a transformer, or one compute phase and one exchange.

    Attributes:
        transformer: the shape, in numbers.
        hugging_face: a `config.json` to read it from, relative to this file; the loader puts `transformer`
            in its place.
        compute: of each rank, once.
        exchange: what follows it.
    """

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)]
    transformer: TransformerConfig | None = None
    hugging_face: Annotated[str, Field(min_length=1)] | None = None
    compute: ComputeConfig | None = None
    exchange: ExchangeConfig | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "ModelConfig":
        require_one_of(self, ("transformer",), ("hugging_face",), ("compute", "exchange"))
        return self
