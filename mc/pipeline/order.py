"""Orders: what each stage of a pipeline does, one operation after the other.

A model is cut into *parts*; a *stage* (a rank, or a group of ranks that work as one) holds one part per *chunk*. A
micro-batch goes through all parts forward, and backward in reverse. A schedule fixes, per stage, the sequence of its
operations and nothing else: when they run follows from what they wait for (`mc.pipeline.timetable`).

An operation is a forward, a whole backward, one of the halves into which a zero-bubble schedule splits it (gradients
of the inputs, which the stage before waits for, and of the weights, which nobody does), or a forward and a whole
backward of two micro-batches run as one (joint), which takes a time of its own.

Parts lie on stages in two ways. In circles: chunk c of stage s is part c·p + s. Or, in a bidirectional pipeline, in
both directions at once: chunk 0 of stage s is part s, chunk 1 part p − 1 − s, and a micro-batch uses one of the two.
"""

import enum
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mc.errors import InputError

Schedule = Literal["gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe"]


class PipelineError(InputError):
    """A pipeline that cannot be; the text says which number, and which numbers can."""


class Kind(enum.IntEnum):
    """What an operation does.

    Attributes:
        IDLE: nothing; fills rows of sequences of unequal length.
        FORWARD: one micro-batch through one chunk.
        BACKWARD: the whole backward: gradients of inputs and weights.
        INPUT: gradients of the inputs alone.
        WEIGHT: gradients of the weights alone, after INPUT.
        JOINT: FORWARD of one micro-batch and BACKWARD of another, overlapped.
    """

    IDLE = -1
    FORWARD = 0
    BACKWARD = 1
    INPUT = 2
    WEIGHT = 3
    JOINT = 4


class Operation(NamedTuple):
    """One entry of a stage's sequence.

    Attributes:
        kind: what is done.
        micro_batch: to which micro-batch; of a joint operation, the one that goes forward.
        chunk: by which chunk of the stage.
        back_micro_batch: the one that goes backward in a joint operation; −1 otherwise.
        back_chunk: and by which chunk.
    """

    kind: int
    micro_batch: int
    chunk: int
    back_micro_batch: int = -1
    back_chunk: int = -1


@dataclass(frozen=True, eq=False)
class Order:
    """Sequences of all stages. Make one with `mc.pipeline.order`.

    Attributes:
        schedule: its name.
        stages: p.
        micro_batches: m.
        chunks: parts that a stage holds.
        bidirectional: whether micro-batches enter at both ends.
        kind: int[stages, operations], `Kind`; IDLE after the end of a shorter sequence.
        micro_batch: int[stages, operations]; −1 where idle.
        chunk: likewise.
        back_micro_batch: int[stages, operations], of joint operations; −1 elsewhere.
        back_chunk: likewise.
    """

    schedule: str
    stages: int
    micro_batches: int
    chunks: int
    bidirectional: bool
    kind: NDArray[np.int64]
    micro_batch: NDArray[np.int64]
    chunk: NDArray[np.int64]
    back_micro_batch: NDArray[np.int64]
    back_chunk: NDArray[np.int64]

    @property
    def operations(self) -> int:
        """Length of the longest sequence."""
        return self.kind.shape[1]

    @property
    def parts(self) -> int:
        """Cuts of the model."""
        return self.stages if self.bidirectional else self.stages * self.chunks

    @property
    def part(self) -> NDArray[np.int64]:
        """int[stages, chunks]: the part of the model that each chunk of each stage holds."""
        return parts(self.stages, self.chunks, bidirectional=self.bidirectional)

    def sequence(self, stage: int) -> list[Operation]:
        """The operations of a stage."""
        columns = (self.kind, self.micro_batch, self.chunk, self.back_micro_batch, self.back_chunk)
        rows = zip(*(column[stage].tolist() for column in columns), strict=True)
        return [Operation(*row) for row in rows if row[0] != Kind.IDLE]


def parts(stages: int, chunks: int, *, bidirectional: bool) -> NDArray[np.int64]:
    """int[stages, chunks]: which part of the model lies where."""
    stage = np.arange(stages)
    if bidirectional:
        return np.stack([stage, stages - 1 - stage], axis=1)
    return stage[:, None] + stages * np.arange(chunks)


def tabulated(schedule: str, micro_batches: int, chunks: int, *columns: NDArray[np.int64]) -> Order:
    """An order from tables [stages, operations]: kinds, micro-batches and chunks, or all five columns of `Operation`."""
    given = [np.array(column, np.int64) for column in columns]
    given += [np.full_like(given[0], -1)] * (5 - len(given))
    for column in given:
        column.setflags(write=False)
    return Order(schedule, given[0].shape[0], micro_batches, chunks, schedule == "dualpipe", *given)
