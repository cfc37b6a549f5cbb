"""Bytes of activations that a rank keeps from a forward pass for the backward pass.

Korthikanti et al. 2022 (arXiv 2205.05198), table 2, for one layer of the GPT shape with dropout, on b
sequences of s tokens, 2 bytes per number and 1 per mask, with a heads:

| | bytes per layer |
|---|---|
| one rank | sbh (34 + 5as/h) |
| t ranks, tensor parallel | sbh (10 + 24/t + 5as/(ht)) |
| with sequence parallelism | sbh/t (34 + 5as/h) |
| and selective recomputation | sbh/t · 34 |
| full recomputation | 2sbh |

The same counting for other shapes: what a matrix product reads stays, once; norms and activation functions
keep what they read, dropout its mask, softmax and dropout what they wrote. Fused attention keeps queries,
keys, values, its output and 4 bytes per query and head, never the square of scores, so selective
recomputation has nothing to remove but those 4. With sequence parallelism the input that full recomputation
keeps is cut along the sequence, too, as Megatron-LM keeps it.
"""

from functools import lru_cache

from mc.config.plan import Recompute
from mc.transformer.attention import STATISTIC_BYTES, local_kv_heads
from mc.transformer.feed_forward import routed_tokens
from mc.transformer.operation import Split
from mc.transformer.shape import MOE, Transformer


@lru_cache(maxsize=8192)
def activations(shape: Transformer, kind: str, split: Split, recompute: Recompute = "none") -> float:
    """Bytes that one layer of a kind keeps on one rank for one micro-batch.

    Experts count with their mean load. While a layer that is fully recomputed runs backward, it needs what it
    would keep under `none` besides.
    """
    values = split.tokens_apart * shape.hidden
    if recompute == "full":
        return split.activation_bytes * values
    attention = _attention(shape, split, keep_square=recompute == "none")
    network = _experts(shape, split) if kind == MOE else _mlp(shape, split)
    masks = 2 * values if shape.dropout else 0.0
    # What the norms read; with a norm behind each part, its output, too.
    norms = (4 if shape.post_norms else 2) * split.activation_bytes * values
    return norms + masks + attention + network


def embedding_activations(shape: Transformer, split: Split) -> float:
    """Bytes that the embedding keeps: the mask of its dropout."""
    return split.tokens_apart * shape.hidden if shape.dropout else 0.0


def head_activations(shape: Transformer, split: Split) -> float:
    """Bytes that the head keeps: what the final norm and the product read, and the logits in fp32."""
    values = split.tokens_apart * shape.hidden
    norm, product = split.activation_bytes * values, split.operand_bytes * values
    logits = 4.0 * split.tokens * shape.vocab / split.tp
    # The two vectors that are normalised and joined.
    joined = 2 * norm + 2 * product
    return (1 + shape.mtp_layers) * (norm + product + logits) + shape.mtp_layers * joined


def _attention(shape: Transformer, split: Split, *, keep_square: bool) -> float:
    tokens, apart = split.tokens, split.tokens_apart
    stored, operand = split.activation_bytes, split.operand_bytes
    heads, kv_heads = shape.heads / split.tp, local_kv_heads(shape, split.tp)
    key, value, mla = shape.key_dim, shape.value_dim, shape.mla
    kept = operand * apart * shape.hidden
    if mla is not None:
        # Before and after their norms.
        kept += (stored + operand) * apart * ((mla.q_rank or 0) + mla.kv_rank)
    queries_and_keys = stored * tokens * (heads + kv_heads) * key
    kept += queries_and_keys * (2 if shape.qk_norm else 1)
    kept += stored * tokens * kv_heads * value
    # The output is what the projection reads. If that is converted, fused attention keeps its own.
    kept += operand * tokens * heads * value
    if split.fused_attention:
        kept += stored * tokens * heads * value if operand < stored else 0.0
        return kept + (STATISTIC_BYTES * tokens * heads if keep_square else 0.0)
    square = tokens * split.sequence_length * heads
    return kept + ((stored + (1 + stored if shape.dropout else 0)) * square if keep_square else 0.0)


def _mlp(shape: Transformer, split: Split) -> float:
    entering = split.operand_bytes * split.tokens_apart * shape.hidden
    return entering + _inner(shape, split, split.tokens, shape.ffn / split.tp)


def _experts(shape: Transformer, split: Split) -> float:
    experts = shape.experts
    assert experts is not None
    routed = routed_tokens(split)
    visits = routed * split.etp * experts.top_k
    # For router and shared experts: the norm's output. Then the scores, and a copy of each token per visit.
    kept = split.activation_bytes * split.tokens_apart * shape.hidden
    kept += 4.0 * routed * experts.count
    kept += split.operand_bytes * visits * shape.hidden
    kept += _inner(shape, split, visits, experts.ffn / split.etp)
    if experts.shared_ffn:
        kept += _inner(shape, split, split.tokens, experts.shared_ffn / split.tp)
    return kept


def _inner(shape: Transformer, split: Split, rows: float, width: float) -> float:
    """What the activation function reads, and what the second product reads."""
    inner = (2 if shape.gated else 1) * width
    return rows * (split.activation_bytes * inner + split.operand_bytes * width)
