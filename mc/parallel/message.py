"""What a rank sends in a step, one entry for each kind of message."""

from dataclasses import dataclass
from typing import Literal

from mc.parallel.group import Group

Where = Literal["forward", "backward", "step"]
Per = Literal["layer", "chunk", "micro-batch", "step"]
Stages = Literal["all", "first", "last", "ends"]


@dataclass(frozen=True)
class Message:
    """Messages of one kind.

    Attributes:
        dimension: `tp`, `cp`, `pp`, `ep`, `etp`, `dp` (replicas, which share gradients) or `edp` (those of experts).
        what: is sent.
        collective: that does it.
        bytes: of one, counted as nccl-tests does: of the whole buffer.
        group: among whom.
        each: how many there are per micro-batch in each `per`, or in a step for messages of the step.
        count: how many in a step, on the rank that takes part in the most.
        where: forward pass, backward pass, or the step, after the last or before the first micro-batch.
        segment: of the layer that waits for it, `attention`, `mlp`, `experts`, or `embedding` or `head`; None between
            segments.
        per: layer of its kind, chunk, micro-batch, or step.
        blocking: whether computing waits; else it is sent behind.
        stages: of the pipeline that send it.
    """

    dimension: str
    what: str
    collective: str
    bytes: float
    group: Group
    each: float
    count: float
    where: Where
    segment: str | None
    per: Per
    blocking: bool
    stages: Stages = "all"

    @property
    def total(self) -> float:
        """Bytes in a step, counted as those of one."""
        return self.bytes * self.count
