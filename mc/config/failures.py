"""Failures: how often chips interrupt a job, and what an interruption costs."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from mc.config.quantities import PositiveRatio, PositiveTime, Time
from mc.document import StrictModel

AUTO = "auto"


def _is_auto(value: Any) -> str:
    return AUTO if value == AUTO else "time"


class FailuresConfig(StrictModel):
    """Interruptions of a job over days.

    Attributes:
        mtbf_per_chip: mean time between failures of one chip with all that goes with it; those of n chips come n
            times as often.
        mtbf_per_link: mean time between failures of one network link that the job cannot do without, where these are
            not in `mtbf_per_chip`; None where they are.
        links_per_chip: how many such links there are for each chip.
        restart: from an interruption until the job computes again.
        checkpoint_write: how long writing a checkpoint stops the job.
        checkpoint_interval: from one checkpoint to the next, or `auto` for the best.
        spares: chips that stand by.
        replacement: how long a failed chip takes to be back, or replaced.
    """

    mtbf_per_chip: PositiveTime
    mtbf_per_link: PositiveTime | None = None
    links_per_chip: PositiveRatio = 1.0
    restart: Time
    checkpoint_write: Time
    checkpoint_interval: Annotated[
        Annotated[Literal["auto"], Tag(AUTO)] | Annotated[PositiveTime, Tag("time")], Discriminator(_is_auto)
    ] = AUTO
    spares: Annotated[int, Field(ge=0)] = 0
    replacement: Time = 0.0
