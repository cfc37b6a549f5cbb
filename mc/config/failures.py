"""Failures: how often chips interrupt a job, and what an interruption costs."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from mc.config.quantities import PositiveTime, Time
from mc.document import StrictModel

AUTO = "auto"


def _is_auto(value: Any) -> str:
    return AUTO if value == AUTO else "time"


class FailuresConfig(StrictModel):
    """Interruptions of a job over days.

    Attributes:
        mtbf_per_chip: mean time between failures of one chip with all that goes with it; those of n chips come n
            times as often.
        restart: from an interruption until the job computes again.
        checkpoint_write: how long writing a checkpoint stops the job.
        checkpoint_interval: from one checkpoint to the next, or `auto` for the best.
        spares: chips that stand by.
        replacement: how long a failed chip takes to be back, or replaced.
    """

    mtbf_per_chip: PositiveTime
    restart: Time
    checkpoint_write: Time
    checkpoint_interval: Annotated[
        Annotated[Literal["auto"], Tag(AUTO)] | Annotated[PositiveTime, Tag("time")], Discriminator(_is_auto)
    ] = AUTO
    spares: Annotated[int, Field(ge=0)] = 0
    replacement: Time = 0.0
