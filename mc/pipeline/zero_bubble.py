"""ZB-H1: the backward in two halves; the one for the weights fills the gaps, in the memory of 1F1B.

Stage s runs p − 1 − s forwards ahead, as in 1F1B, and lets s gradients of weights wait, so that every stage holds p
micro-batches. The stage before it waits for the shorter half only, and what was put off is done while the last
backwards come back.

Qi, Wan, Huang, Lin: Zero Bubble (Almost) Pipeline Parallelism. ICLR 2024, arXiv:2401.10241, 2.1.
"""

import numpy as np

from mc.pipeline.order import Kind, Order, assemble


def zero_bubble(stages: int, micro_batches: int) -> Order:
    """The order of ZB-H1."""
    return assemble(
        "zb-h1", micro_batches, 1, [_sequence(stages, micro_batches, stage) for stage in range(stages)]
    )


def _sequence(stages: int, micro_batches: int, stage: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    each = np.arange(micro_batches)
    # In turn k: the forward of k + ahead, the inputs' gradients of k, the weights' of k − stage.
    turn = np.concatenate([each - (stages - 1 - stage), each, each + stage])
    kind = np.repeat([Kind.FORWARD, Kind.INPUT, Kind.WEIGHT], micro_batches)
    place = np.lexsort((np.tile(each, 3), kind, turn))
    return kind[place], np.tile(each, 3)[place], np.zeros(3 * micro_batches, np.int64)
