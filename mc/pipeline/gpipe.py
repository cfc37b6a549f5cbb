"""GPipe: all micro-batches forward, then all backward.

Huang et al.: GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism. NeurIPS 2019. Backwards run
here in the order of the forwards, as in later systems; the time is the same.
"""

import numpy as np

from mc.pipeline.order import Kind, Order, assemble


def gpipe(stages: int, micro_batches: int) -> Order:
    """The order of GPipe; each stage holds activations of all micro-batches."""
    each = np.arange(micro_batches)
    kind = np.repeat([Kind.FORWARD, Kind.BACKWARD], micro_batches)
    sequence = (kind, np.tile(each, 2), np.zeros(2 * micro_batches, np.int64))
    return assemble("gpipe", micro_batches, 1, [sequence] * stages)
