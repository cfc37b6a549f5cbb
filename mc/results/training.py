"""What a training step comes to beside its time: throughput, utilisation, memory, goodput. Plain data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mc.estimate import Estimate


@dataclass(frozen=True)
class GoodputSummary:
    """A job over days. Shares of its time add up to 1.

    Attributes:
        effective_ratio: share that makes the job go forward.
        checkpointing: share that writes checkpoints.
        recomputing: share that does again what was lost.
        restarting: share that restarts.
        waiting: share that waits for a chip.
        interruptions_per_day: how many.
        checkpoint_interval_s: from one checkpoint to the next.
    """

    effective_ratio: float
    checkpointing: float
    recomputing: float
    restarting: float
    waiting: float
    interruptions_per_day: float
    checkpoint_interval_s: float


@dataclass(frozen=True)
class TrainingSummary:
    """A transformer's step. Utilisations are parts of the peak of all chips in the format of the mathematics.

    Attributes:
        plan: in a few words, such as `tp 8 x pp 16 x dp 128, interleaved`.
        parameters: of the model.
        tokens: per step.
        tokens_per_s: of the whole job.
        mfu: model FLOP utilisation: without what is computed again.
        hfu: hardware FLOP utilisation: with it.
        tflops_per_chip: model FLOP/s of a chip, 10^12.
        bubble_fraction: part of the step in which a stage has nothing to do, without noise.
        exposed_s: seconds in a step that computing waits for messages, by dimension, without noise.
        memory_bytes: what a rank of the fullest stage holds, by what it is; `total` and `available` with it.
        dropped: part of the tokens' choices of experts that are not served.
        goodput: over days; None where failures are not described.
    """

    plan: str
    parameters: float
    tokens: int
    tokens_per_s: Estimate
    mfu: Estimate
    hfu: Estimate
    tflops_per_chip: Estimate
    bubble_fraction: float
    exposed_s: Mapping[str, float]
    memory_bytes: Mapping[str, float]
    dropped: float = 0.0
    goodput: GoodputSummary | None = None


def training_to_json(training: TrainingSummary) -> dict[str, Any]:
    """As plain data, intervals as [value, low, high]."""
    found = asdict(training)
    for name in ("tokens_per_s", "mfu", "hfu", "tflops_per_chip"):
        estimate: Estimate = getattr(training, name)
        found[name] = [estimate.value, estimate.low, estimate.high]
    return found


def training_from_json(found: Mapping[str, Any]) -> TrainingSummary:
    """The inverse of `training_to_json`."""
    estimates = {name: Estimate(*found[name]) for name in ("tokens_per_s", "mfu", "hfu", "tflops_per_chip")}
    goodput = None if found["goodput"] is None else GoodputSummary(**found["goodput"])
    return TrainingSummary(**{**found, **estimates, "goodput": goodput})
