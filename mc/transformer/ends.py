"""The operations at the two ends of a model: the embedding, and the head with the loss.

The vocabulary is divided among the `tp` ranks. Where blocks predict further tokens (multi-token prediction,
DeepSeek-V3, arXiv 2412.19437, section 2.2), the head segment has their projections from two hidden vectors to
one and a pass through the shared head for each; the blocks themselves are layers of `mtp_kinds`.
"""

from functools import lru_cache

from mc.transformer.attention import norm
from mc.transformer.operation import Passes, Segment, Split, memory
from mc.transformer.shape import Transformer

# Passes over the logits in fp32 between the product and its gradient (convert, maximum, exponential, sum,
# quotient; the loss's gradient): bytes per logit beside the one time that it is read or written as an
# activation.
LOSS_FORWARD_BYTES = 28.0
LOSS_BACKWARD_BYTES = 4.0


@lru_cache(maxsize=8192)
def embedding_segment(shape: Transformer, split: Split) -> Segment:
    """The operations of one rank to look up, place and drop out the tokens of one micro-batch."""
    passes = Passes(split)
    stored = split.activation_bytes
    values, apart = split.tokens * shape.hidden, split.tokens_apart * shape.hidden
    passes.forward.append(memory("embedding", 2 * stored * values))
    passes.backward_weight.append(memory("embedding", (stored + 2 * split.gradient_bytes) * values))
    if shape.max_positions:
        passes.forward.append(memory("positions", 3 * stored * apart))
        passes.backward_weight.append(memory("positions", (stored + 2 * split.gradient_bytes) * apart))
    if shape.dropout:
        passes.memory("embedding dropout", (2 * stored + 1) * apart, (2 * stored + 1) * apart)
    return passes.segment("embedding")


@lru_cache(maxsize=8192)
def head_segment(shape: Transformer, split: Split) -> Segment:
    """The operations of one rank from the last hidden state to the loss, for one micro-batch."""
    passes = Passes(split)
    values = split.tokens_apart * shape.hidden
    _predict(passes, shape, values)
    for _ in range(shape.mtp_layers):
        norm(passes, "mtp norms", 2 * values)
        # Its matrix is the same on all tensor parallel ranks; each projects its part of the sequence.
        passes.linear("mtp projection", split.tokens_apart, 2 * shape.hidden, shape.hidden)
        _predict(passes, shape, values)
    return passes.segment("head")


def _predict(passes: Passes, shape: Transformer, values: float) -> None:
    split = passes.split
    logits = split.tokens * shape.vocab / split.tp
    norm(passes, "final norm", values, residual=False)
    passes.linear("logits", split.tokens, shape.hidden, shape.vocab / split.tp)
    stored = split.activation_bytes
    passes.memory("loss", (LOSS_FORWARD_BYTES + stored) * logits, (LOSS_BACKWARD_BYTES + stored) * logits)
