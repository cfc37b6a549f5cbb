"""Activations that a stage holds: what a schedule costs in memory."""

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.order import Kind, Order


def in_flight(order: Order) -> NDArray[np.int64]:
    """int[stages]: how many activations, of one micro-batch and one chunk each, a stage holds at most.

    They are held from the forward until the gradients of the weights are there. A joint operation holds those of both its
    micro-batches.

    For stage s of p, m micro-batches, v chunks, groups of g:

        GPipe        m
        1F1B         min(p − s, m)
        interleaved  min(2(p − 1 − s) + (v − 1)·g + 1, m·v)
        ZB-H1        min(p, m)
        DualPipe     p + 1
    """
    added = np.isin(order.kind, (Kind.FORWARD, Kind.JOINT))
    dropped = np.isin(order.kind, (Kind.BACKWARD, Kind.WEIGHT, Kind.JOINT))
    during = np.cumsum(added, axis=1) - np.cumsum(dropped, axis=1) + dropped
    return during.max(axis=1)
