"""Measured durations through the step graph: does the engine's pipeline take as long as the measured one did?

Every forward and backward takes what it took in the trace, exchanges between stages what they take when both sides are
ready, and hold up the sender (the traces send and receive in pairs). The engine finds who waits for whom:

    step = traced operations before and after + maximum over replicas of their pipelines (+ host).

The order of all operations in the traces is that of 1F1B, without exception; nothing is fitted but `host`: the time between
traced operations, for which the median of the half of the steps that is not scored stands in.
"""

from dataclasses import dataclass

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from experiments.traces.record import Record, load
from mc.pipeline import Timetable, Transfer, completion, order_of, timetable_of

SCHEDULE = "1f1b"


@dataclass(frozen=True)
class Replayed:
    """Errors of a replay, relative to the measured times; positive where the replay is too slow.

    Attributes:
        trace: which.
        what: is replayed: `pipeline` (of all replicas), `traced operations`, or `with the host`.
        steps: how many are scored; of pipelines, steps times replicas.
        bias: mean error.
        error: mean absolute error.
        worst: largest absolute error.
        too_slow: share of positive errors.
        correlation: between replayed and measured times.
    """

    trace: str
    what: str
    steps: int
    bias: float
    error: float
    worst: float
    too_slow: float
    correlation: float


def timetable(record: Record) -> Timetable:
    """The schedule of the traces."""
    _, _, stages, _, micro_batches = record.durations.shape
    return timetable_of(SCHEDULE, stages, micro_batches)


def in_order(record: Record) -> NDArray[np.float64]:
    """Durations in the order in which the stages run them, [stages, operations, steps·replicas]."""
    steps, replicas, stages, _, micro_batches = record.durations.shape
    order = order_of(SCHEDULE, stages, micro_batches)
    stage = np.arange(stages)[:, None]
    found = record.durations[:, :, stage, order.kind, order.micro_batch]
    return np.moveaxis(found.reshape(steps * replicas, stages, -1), 0, -1)


def transfer(record: Record, samples: int) -> Transfer:
    """Exchanges for so many samples of all replicas, samples first."""
    both = (np.tile(each.T, samples) for each in (record.forward, record.backward))
    return Transfer(*both, blocking=True)


def pipelines(record: Record) -> NDArray[np.float64]:
    """What the engine takes for the measured pipelines, [steps, replicas]."""
    steps, replicas = record.pipelines.shape
    run = eqx.filter_jit(lambda durations, between: _run(record, durations, between))
    found = run(in_order(record), transfer(record, steps))
    return np.asarray(found, np.float64).reshape(steps, replicas)


def _run(record: Record, durations: NDArray[np.float64], between: Transfer) -> object:
    return completion(timetable(record), durations, durations.shape[-1], transfer=between).makespan


def replay(trace: str) -> tuple[Replayed, ...]:
    """Pipelines and whole steps of a record."""
    record = load(trace)
    found = pipelines(record)
    steps = record.traced + found.max(axis=1)
    host = np.empty_like(steps)
    even = np.arange(steps.size) % 2 == 0
    host[even], host[~even] = np.median(record.host[~even]), np.median(record.host[even])
    cases = (
        ("pipeline", found, record.pipelines),
        ("traced operations", steps, record.span),
        ("with the host", steps + host, record.span),
    )
    return tuple(_scored(trace, *case) for case in cases)


def _scored(trace: str, what: str, found: NDArray[np.float64], measured: NDArray[np.float64]) -> Replayed:
    error = (found / measured - 1).ravel()
    together = np.corrcoef(found.ravel(), measured.ravel())[0, 1]
    figures = (error.mean(), np.abs(error).mean(), np.abs(error).max(), (error > 0).mean(), together)
    return Replayed(trace, what, error.size, *(float(figure) for figure in figures))
