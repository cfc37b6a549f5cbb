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

A part that is recomputed (`mc.config.recompute`) keeps what it reads and not what it writes: for the GPT shape

| part | bytes less per layer, on one rank |
|---|---|
| `attention` | 5as²b |
| `norms` | 4sbh: what the first products of attention and network read |
| `activations` | 8sbh: what the second product of the network reads |
| `mlp` | 16sbh: all of the network but its input |

`mla_up` keeps latents and the rotary part of the key instead of queries, keys and values of all heads; `experts`
the input of the layer instead of a copy per visit, and all that follows.

Where activations are kept in a format of their own (`kept_bytes`, DeepSeek-V3, arXiv 2412.19437, section 3.3.3), attention's
output is kept once, in 16 bits, since attention's own gradient needs it.
"""

from functools import lru_cache

from mc.config.recompute import LAYER, Recompute, parts_of
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
    values, parts = split.tokens_apart * shape.hidden, parts_of(recompute)
    if LAYER in parts:
        return split.activation_bytes * values
    network = (_experts if kind == MOE else _mlp)(shape, split, parts)
    masks = 2 * values if shape.dropout else 0.0
    # What the norms read; with a norm behind each part, its output, too.
    norms = (4 if shape.post_norms else 2) * split.activation_bytes * values
    return norms + masks + _attention(shape, split, parts) + network


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


def _attention(shape: Transformer, split: Split, parts: frozenset[str]) -> float:
    tokens, apart = split.tokens, split.tokens_apart
    stored, operand = split.activation_bytes, split.kept_operand_bytes
    normed = 0.0 if "norms" in parts else operand
    heads, kv_heads = shape.heads / split.tp, local_kv_heads(shape, split.tp)
    key, value, mla = shape.key_dim, shape.value_dim, shape.mla
    kept = normed * apart * shape.hidden
    if mla is not None:
        # Before and after their norms.
        kept += (stored + normed) * apart * ((mla.q_rank or 0) + mla.kv_rank)
    if mla is not None and "mla_up" in parts:
        kept += stored * apart * mla.rope_dim
    else:
        queries_and_keys = stored * tokens * (heads + kv_heads) * key
        kept += queries_and_keys * (2 if shape.qk_norm else 1)
        kept += stored * tokens * kv_heads * value
    # The output is what the projection reads. If that is converted, fused attention keeps its own.
    output = tokens * heads * value
    if not split.fused_attention:
        kept += operand * output
    elif split.kept_bytes is not None:
        kept += stored * output
    else:
        kept += (operand + (stored if operand < stored else 0.0)) * output
    if "attention" in parts:
        return kept
    if split.fused_attention:
        return kept + STATISTIC_BYTES * tokens * heads
    square = tokens * split.sequence_length * heads
    return kept + (stored + (1 + stored if shape.dropout else 0)) * square


def _mlp(shape: Transformer, split: Split, parts: frozenset[str]) -> float:
    entering = _entering(shape, split, parts, "mlp", split.kept_operand_bytes)
    return entering + ("mlp" not in parts) * _inner(shape, split, split.tokens, shape.ffn / split.tp, parts)


def _experts(shape: Transformer, split: Split, parts: frozenset[str]) -> float:
    experts = shape.experts
    assert experts is not None
    # For router and shared experts: the norm's output.
    kept = _entering(shape, split, parts, "experts", split.kept_activation_bytes)
    if "experts" in parts:
        return kept
    routed = routed_tokens(split)
    visits = routed * split.etp * experts.top_k
    # The scores, and a copy of each token per visit.
    kept += 4.0 * routed * experts.count
    kept += split.kept_operand_bytes * visits * shape.hidden
    kept += _inner(shape, split, visits, experts.ffn / split.etp, parts)
    if experts.shared_ffn:
        kept += _inner(shape, split, split.tokens, experts.shared_ffn / split.tp, parts)
    return kept


def _entering(shape: Transformer, split: Split, parts: frozenset[str], whole: str, width: float) -> float:
    """What a network reads: as its first product does, or as it came if all of it is computed again."""
    if "norms" in parts:
        return 0.0
    width = split.kept_activation_bytes if whole in parts else width
    return width * split.tokens_apart * shape.hidden


def _inner(shape: Transformer, split: Split, rows: float, width: float, parts: frozenset[str]) -> float:
    """What the activation function reads, and what the second product reads."""
    inner = (2 if shape.gated else 1) * width
    second = 0.0 if "activations" in parts else split.kept_operand_bytes * width
    return rows * (split.kept_activation_bytes * inner + second)
