"""What a rank keeps in memory."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """Bytes on a rank of the stage that needs the most.

    Attributes:
        weights: as the mathematics reads them.
        gradients: in which micro-batches add up.
        optimizer: master copy and moments.
        activations: that the backward pass waits for, and the logits of the loss.
        stage: which it is.
        in_flight: micro-batches whose activations it holds at most, over its chunks.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    stage: int
    in_flight: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations
