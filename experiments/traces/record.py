"""Two recorded jobs of ByteDance: what every operation of their steps took.

AR: 64 GPUs (4 replicas of 4 stages of 4 tensor ranks), one worker slowed down on purpose; 44 steps of 32 micro-batches.
ST: 8 GPUs (2 replicas of 4 stages), whose last stage has the loss to work out as well; 32 steps of 4 micro-batches.

J. Lin et al.: Understanding Stragglers in Large Model Training Using What-if Analysis. OSDI 2025, arXiv:2505.05713.
Figures from their artifact, github.com/ByteDance-Seed/StragglerAnalysis at 8efcd7f, Apache-2.0.
"""

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_DATA = Path(__file__).parent.parent / "data"
OPERATIONS, STEPS = _DATA / "traces_operations.csv.gz", _DATA / "traces_steps.csv"
SOURCE = (
    "From trace-AR.parquet and trace-ST.parquet of github.com/ByteDance-Seed/StragglerAnalysis, commit 8efcd7f "
    "(Apache-2.0), by experiments/traces/extract.py. Durations in units of 10 us; kind 0 forward, 1 backward; else seconds"
)
# Replicas, stages, micro-batches.
SIZES = {"AR": (4, 4, 32), "ST": (2, 4, 4)}
UNIT = 1e-5
# What comes after the last backward, in this order.
AFTER = (
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "grads-reduce-scatter",
    "optimizer-clip-main-grad",
    "optimizer",
)


@dataclass(frozen=True, eq=False)
class Record:
    """Steps of a job, in seconds.

    Attributes:
        trace: its name.
        steps: their numbers.
        durations: [steps, replicas, stages, kinds, micro-batches], forwards and backwards.
        pipelines: [steps, replicas], from the first forward of a replica to its last backward.
        span: [steps], of whole steps.
        traced: [steps], operations before and after the pipelines.
        host: [steps], what lies between those and is not traced.
        forward: [replicas, stages], exchanges of activations over each boundary, a median; the last is not used.
        backward: likewise, of gradients.
    """

    trace: str
    steps: NDArray[np.int64]
    durations: NDArray[np.float64]
    pipelines: NDArray[np.float64]
    span: NDArray[np.float64]
    traced: NDArray[np.float64]
    host: NDArray[np.float64]
    forward: NDArray[np.float64]
    backward: NDArray[np.float64]

    def of(self, part: slice | NDArray[np.bool_]) -> "Record":
        """Some of the steps."""
        rows = (self.steps, self.durations, self.pipelines, self.span, self.traced, self.host)
        return Record(self.trace, *(row[part] for row in rows), self.forward, self.backward)  # pyright: ignore


@lru_cache
def load(trace: str) -> Record:
    """A recorded job."""
    replicas, stages, micro_batches = SIZES[trace]
    with gzip.open(OPERATIONS, "rt", encoding="utf-8") as file:
        durations = np.array([_numbers(row["durations"]) for row in _rows(file) if row["trace"] == trace])
    with STEPS.open(encoding="utf-8") as file:
        rows = [row for row in _rows(file) if row["trace"] == trace]

    def column(name: str) -> NDArray[np.float64]:
        return np.array([float(row[name]) for row in rows])

    def exchanges(name: str) -> NDArray[np.float64]:
        found = np.median([_numbers(row[name]) for row in rows], axis=0).reshape(replicas, stages - 1)
        return np.pad(found, ((0, 0), (0, 1)))

    return Record(
        trace,
        np.array([int(row["step"]) for row in rows]),
        durations.reshape(-1, replicas, stages, 2, micro_batches) * UNIT,
        np.array([_numbers(row["replicas"]) for row in rows]),
        column("span"),
        column("gather") + sum(column(name) for name in AFTER),
        column("before") + column("host"),
        exchanges("forward"),
        exchanges("backward"),
    )


def _rows(lines: Iterable[str]) -> csv.DictReader:
    return csv.DictReader(line for line in lines if not line.startswith("#"))


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split()]
