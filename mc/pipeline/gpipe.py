"""GPipe: all micro-batches forward, then all backward.

Huang et al.: GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism. NeurIPS 2019. Backwards run
here in the order of the forwards, as in later systems; the time is the same.
"""

import numpy as np

from mc.pipeline.order import Kind, Order, tabulated


def gpipe(stages: int, micro_batches: int) -> Order:
    """The order of GPipe; each stage holds activations of all micro-batches."""
    place = np.arange(2 * micro_batches)
    kind = np.where(place < micro_batches, Kind.FORWARD.value, Kind.BACKWARD.value)
    columns = (np.tile(column, (stages, 1)) for column in (kind, place % micro_batches, 0 * place))
    return tabulated("gpipe", micro_batches, 1, *columns)
