"""The kinds of messages that a rank sends in a step."""

from dataclasses import dataclass
from typing import Literal

from mc.parallel.group import Group

Where = Literal["forward", "backward", "step"]
Per = Literal["layer", "chunk", "step"]
Stages = Literal["all", "first", "last", "ends"]
# What computes while a message that does not block is under way.
Behind = Literal["attention", "input gradients", "weight gradients", "segment", "micro-batch", "layers"]


@dataclass(frozen=True, slots=True)
class Message:
    """Messages of one kind.

    Attributes:
        dimension: `tp`, `cp`, `pp`, `ep`, `etp`, `dp` (those that share gradients, dp x cp) or `edp` (of experts).
        what: is sent.
        collective: that does it.
        bytes: of one, counted as nccl-tests does: of the whole buffer.
        group: among whom.
        each: how many there are in each `per`, for one micro-batch; in a step for messages of the step.
        count: how many in a step, on the rank that takes part in the most.
        where: forward pass, backward pass, or between the last backward pass and the first forward pass.
        segment: of the model that it belongs to: `attention`, `mlp`, `experts`, `embedding`, `head`; None for others.
        per: `layer`, each time that a micro-batch passes its segment; `chunk`, each time that it passes a part of the
            model; or `step`.
        behind: what computes meanwhile; None if computing waits for it.
        stages: of the pipeline that send it.
        to_nodes: whether each token is sent once to a node for all of its ranks, so that the busiest node counts and not
            the busiest rank.
        beside: whether it moves while the one to nodes does, so that only the longer one counts.
        again: whether it is repeated because its part of the layer is computed again, in the layers where that is so.
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
    behind: Behind | None = None
    stages: Stages = "all"
    again: bool = False
    to_nodes: bool = False
    beside: bool = False

    @property
    def blocking(self) -> bool:
        """Whether computing waits for it."""
        return self.behind is None

    @property
    def total(self) -> float:
        """Bytes in a step, counted as those of one."""
        return self.bytes * self.count
