"""A plan with every number filled in."""

from dataclasses import dataclass

from mc.config.plan import (
    DocumentsConfig,
    FormatsConfig,
    OverlapConfig,
    RoutingConfig,
)
from mc.errors import InputError


class PlanError(InputError):
    """A plan that cannot be, or does not fit."""


@dataclass(frozen=True)
class Part:
    """A part of the model on one rank of the pipeline.

    Attributes:
        layers: their indices.
        is_first: whether it has the embedding.
        is_last: whether it has the head and the loss.
    """

    layers: tuple[int, ...]
    is_first: bool
    is_last: bool


@dataclass(frozen=True)
class Plan:
    """How a transformer is spread over ranks.

    Attributes:
        parts: of the model, per stage and chunk. Under `dualpipe` a rank has two, those of stage i and of stage
            pp - 1 - i, so that every layer is on two ranks; else each layer is on one.
        micro_batches: that pass through the pipeline in a step (m), global_batch / (dp x micro_batch).
        chunks: parts on each rank (v); 2 under `dualpipe`.
        zero_group: ranks that shard state among themselves; dp x cp where the file leaves it out.
        fused_attention: whether its matrix is never in memory.

    The others are as in `mc.config.plan`.
    """

    ranks: int
    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    etp: int
    order: tuple[str, ...]
    sequence_parallel: bool
    schedule: str
    chunks: int
    parts: tuple[tuple[Part, ...], ...]
    micro_batch: int
    micro_batches: int
    global_batch: int
    sequence_length: int
    recompute: str
    zero: int
    zero_group: int
    fused_attention: bool
    context: str
    formats: FormatsConfig
    overlap: OverlapConfig
    bucket: float
    optimizer: str
    routing: RoutingConfig
    documents: DocumentsConfig | None
    memory_reserve: float
    algorithm: str = "auto"
    objective: str = "floor"
    protocol: str = "auto"

    @property
    def edp(self) -> int:
        """How many copies of a layer's experts there are."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @property
    def layers(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Indices of the layers, per stage and chunk."""
        return tuple(tuple(part.layers for part in stage) for stage in self.parts)
