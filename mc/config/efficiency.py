"""What a chip reaches of what its data sheet says, and what its host and its kernels cost beside.

Few numbers, one set per generation of chips, fitted to published training steps (`experiments.published`); the
formulas that they go into are in `mc.training.times`. They stand for a chip with the software that such steps are
run with, since nobody publishes one without the other.
"""

from typing import Annotated

from pydantic import Field

from mc.config.quantities import Probability, Ratio, Time
from mc.document import StrictModel

Part = Annotated[Probability, Field(gt=0)]


class RatesConfig(StrictModel):
    """Parts of the peak, by number format; one that is left out reaches what `bf16` does."""

    bf16: Part = 0.75
    fp16: Part | None = None
    tf32: Part | None = None
    fp32: Part | None = None
    fp8: Part | None = None
    fp4: Part | None = None
    int8: Part | None = None

    def of(self, number_format: str) -> float:
        """The part of the peak of a format."""
        found = getattr(self, number_format, None)
        return self.bf16 if found is None else found


class EfficiencyConfig(StrictModel):
    """What is reached of a chip's peaks, and fixed costs.

    Attributes:
        matmul: part of the peak that large matrix products reach.
        half_area: a product of as many numbers reaches half of that, and one of a numbers 1/(1 + A/a); this is A.
        half_depth: and 1/(1 + d/k) where k is summed over; this is d.
        attention: part of the peak that fused attention reaches.
        memory: part of the memory bandwidth.
        kernel: seconds that a kernel takes beside: its start and its last, partly filled wave.
        launch: seconds of the host for each kernel. A rank takes the longer of what its host and its chip take.
        collective_launch: seconds of the host for each collective.
        pass_launch: seconds of the host for each pass of a micro-batch through a part of the model.
        wait: seconds that a blocking collective takes beside: ranks do not come at the same time.
        step: seconds once per step: data, logging, the norm of the gradients.
        overlap: part that is hidden of messages which are sent in pieces beside products.
    """

    matmul: RatesConfig = RatesConfig()
    half_area: Ratio = 1e6
    half_depth: Ratio = 50.0
    attention: Part = 0.5
    memory: Part = 0.75
    kernel: Time = 3e-6
    launch: Time = 8e-6
    collective_launch: Time = 20e-6
    pass_launch: Time = 0.2e-3
    wait: Time = 10e-6
    step: Time = 20e-3
    overlap: Probability = 0.6
