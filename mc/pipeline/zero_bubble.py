"""ZB-H1: the backward in two halves; the one for the weights fills the gaps, in the memory of 1F1B.

Stage s runs p − 1 − s forwards ahead, as in 1F1B, and lets s gradients of weights wait, so that every stage holds p
micro-batches. The stage before it waits for the shorter half only, and what was put off is done while the last
backwards come back.

Qi, Wan, Huang, Lin: Zero Bubble (Almost) Pipeline Parallelism. ICLR 2024, arXiv:2401.10241, 2.1.
"""

import numpy as np

from mc.pipeline.order import Kind, Order, tabulated


def zero_bubble(stages: int, micro_batches: int) -> Order:
    """The order of ZB-H1."""
    stage, each = np.arange(stages)[:, None], np.tile(np.arange(micro_batches), (stages, 1))
    # In turn k: the forward of k + ahead, the inputs' gradients of k, the weights' of k − stage.
    turn = np.concatenate([each - (stages - 1 - stage), each, each + stage], axis=1)
    kind = np.repeat([Kind.FORWARD.value, Kind.INPUT.value, Kind.WEIGHT.value], micro_batches)
    place = np.argsort(turn, axis=1, kind="stable")
    return tabulated("zb-h1", micro_batches, 1, kind[place], place % micro_batches, 0 * place)
