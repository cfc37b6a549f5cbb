"""DualPipe: micro-batches from both ends, so that each stage always has a forward and a backward to overlap.

Each stage holds two parts of the model, one for each direction; half of the m micro-batches enter at the first stage,
half at the last. Near means here the direction that enters nearer to a stage, far the other. The stage r places from
its end runs eight phases (near and far operations of successive micro-batches; W is the oldest weights' gradient that
waits):

    1. p − 2 − 2r  near forwards
    2. r + 1       near forwards, each followed by a far one
    3. p/2 − 1 − r far backwards of inputs, W, far forwards
    4. m/2 − p + r + 1  joint near forward with far backward, then far forward with near backward
    5. p/2 − 1 − r far backwards, each followed by a joint far forward with near backward
    6. r + 1       far backwards, near backwards; the second half of them of inputs only
    7. p/2 − 1 − r W, near backwards of inputs
    8. r + 1       W

The two middle stages run the first pair of phase 4 one after the other, since they would wait for it.

DeepSeek-AI: DeepSeek-V3 Technical Report, arXiv:2412.19437, 3.2.1; the phases are those of the schedule that they
published (github.com/deepseek-ai/DualPipe).
"""

from collections import deque

import numpy as np

from mc.pipeline.order import Kind, Operation, Order, PipelineError, tabulated

_NEAR, _FAR = 0, 1


def dualpipe(stages: int, micro_batches: int) -> Order:
    """The order of DualPipe; micro-batches from m/2 on go from the last stage to the first."""
    if stages % 2:
        raise PipelineError(f"stages: expected an even number for DualPipe; got {stages}")
    if micro_batches % 2 or micro_batches < 2 * stages:
        raise PipelineError(
            f"micro_batches: expected an even number of at least {2 * stages} for DualPipe with {stages} "
            f"stages; got {micro_batches}"
        )
    sequences = [_sequence(stages, micro_batches, stage) for stage in range(stages)]
    table = np.full((stages, max(map(len, sequences)), 5), -1, np.int64)
    for stage, sequence in enumerate(sequences):
        table[stage, : len(sequence)] = sequence
    return tabulated("dualpipe", micro_batches, 2, *np.moveaxis(table, 2, 0))


class _Stage:
    """The sequence of a stage as it is written down."""

    def __init__(self, micro_batches: int, near: int):
        half = micro_batches // 2
        # The direction of a micro-batch is the chunk that takes it.
        self._chunk = (near, 1 - near)
        self._forward = [half * chunk for chunk in self._chunk]
        self._backward = list(self._forward)
        self._waiting: deque[tuple[int, int]] = deque()
        self.sequence: list[Operation] = []

    def _next(self, counters: list[int], end: int) -> tuple[int, int]:
        counters[end] += 1
        return counters[end] - 1, self._chunk[end]

    def forward(self, end: int) -> None:
        self.sequence.append(Operation(Kind.FORWARD, *self._next(self._forward, end)))

    def backward(self, end: int) -> None:
        self.sequence.append(Operation(Kind.BACKWARD, *self._next(self._backward, end)))

    def inputs(self, end: int) -> None:
        which = self._next(self._backward, end)
        self._waiting.append(which)
        self.sequence.append(Operation(Kind.INPUT, *which))

    def weights(self) -> None:
        self.sequence.append(Operation(Kind.WEIGHT, *self._waiting.popleft()))

    def joint(self, forward: int, backward: int) -> None:
        both = (*self._next(self._forward, forward), *self._next(self._backward, backward))
        self.sequence.append(Operation(Kind.JOINT, *both))


def _sequence(stages: int, micro_batches: int, stage: int) -> list[Operation]:
    from_end = min(stage, stages - 1 - stage)
    inner = stages // 2 - 1 - from_end
    own = _Stage(micro_batches, near=int(stage >= stages // 2))
    for _ in range(2 * inner):
        own.forward(_NEAR)
    for _ in range(from_end + 1):
        own.forward(_NEAR)
        own.forward(_FAR)
    for _ in range(inner):
        own.inputs(_FAR)
        own.weights()
        own.forward(_FAR)
    for turn in range(micro_batches // 2 - stages + from_end + 1):
        if turn == 0 and inner == 0:
            own.forward(_NEAR)
            own.backward(_FAR)
        else:
            own.joint(_NEAR, _FAR)
        own.joint(_FAR, _NEAR)
    for _ in range(inner):
        own.backward(_FAR)
        own.joint(_FAR, _NEAR)
    for turn in range(2 * (from_end + 1)):
        # From the middle of the phase on, gradients of weights are put off.
        step = own.backward if turn <= from_end else own.inputs
        step(_NEAR if turn % 2 else _FAR)
    for _ in range(inner):
        own.weights()
        own.inputs(_NEAR)
    for _ in range(from_end + 1):
        own.weights()
    return own.sequence
