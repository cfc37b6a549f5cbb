"""The segments of one layer."""

from functools import lru_cache

from mc.transformer.attention import attention_segment
from mc.transformer.feed_forward import experts_segment, mlp_segment
from mc.transformer.operation import Segment, Split
from mc.transformer.shape import MOE, Transformer


@lru_cache(maxsize=8192)
def segments(shape: Transformer, kind: str, split: Split) -> tuple[Segment, ...]:
    """What one rank computes for one layer of a kind on one micro-batch.

    Args:
        shape: the model.
        kind: `dense` or `moe`, one of the shape's `layer_kinds`.
        split: how the layer is cut.

    Returns:
        Attention, then the network: `mlp` or `experts`.
    """
    network = experts_segment if kind == MOE else mlp_segment
    return attention_segment(shape, split), network(shape, split)
