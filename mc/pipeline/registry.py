"""Schedules by name, and what each of them can do."""

from functools import lru_cache
from typing import get_args

from mc.pipeline.dualpipe import dualpipe
from mc.pipeline.gpipe import gpipe
from mc.pipeline.one_forward_one_backward import interleaved, one_forward_one_backward
from mc.pipeline.order import Order, PipelineError, Schedule
from mc.pipeline.zero_bubble import zero_bubble

SCHEDULES: tuple[str, ...] = get_args(Schedule)
# Chunks per stage that a schedule can have; None: any number.
_CHUNKS = {"gpipe": (1,), "1f1b": (1,), "interleaved": None, "zb-h1": (1,), "dualpipe": (2,)}


def order_of(
    schedule: str, stages: int, micro_batches: int, chunks: int | None = None, *, group: int | None = None
) -> Order:
    """What each stage does, one operation after the other.

    Args:
        schedule: `gpipe`, `1f1b`, `interleaved`, `zb-h1` or `dualpipe`.
        stages: p.
        micro_batches: m, of one step and pipeline; of both directions together in DualPipe.
        chunks: v, parts of the model on each stage; without it 1, and the 2 of DualPipe.
        group: micro-batches that pass a chunk one after the other, of `interleaved` alone; p without it.

    Raises:
        PipelineError: an unknown schedule, or numbers that it cannot have.
    """
    if schedule not in SCHEDULES:
        raise PipelineError(f"schedule: expected one of {', '.join(SCHEDULES)}; got {schedule!r}")
    possible = _CHUNKS[schedule]
    if chunks is None:
        chunks = 1 if possible is None else possible[0]
    for name, value in (("stages", stages), ("micro_batches", micro_batches), ("chunks", chunks)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise PipelineError(f"{name}: expected a whole number of at least 1; got {value!r}")
    if possible is not None and chunks not in possible:
        hint = "; `interleaved` takes any number" if schedule == "1f1b" else ""
        raise PipelineError(f"chunks: expected {possible[0]} per stage for {schedule}; got {chunks}{hint}")
    if group is not None and schedule != "interleaved":
        raise PipelineError(f"group: expected only with `interleaved`; got {group} with {schedule}")
    return _build(schedule, stages, micro_batches, chunks, stages if group is None else group)


@lru_cache(maxsize=1024)
def _build(schedule: str, stages: int, micro_batches: int, chunks: int, group: int) -> Order:
    match schedule:
        case "gpipe":
            return gpipe(stages, micro_batches)
        case "zb-h1":
            return zero_bubble(stages, micro_batches)
        case "dualpipe":
            return dualpipe(stages, micro_batches)
        case "interleaved" if chunks > 1:
            return interleaved(stages, micro_batches, chunks, group)
        case _:
            # One chunk leaves nothing to interleave.
            return one_forward_one_backward(stages, micro_batches)
