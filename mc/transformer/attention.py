"""The operations of attention: a norm, projections, the products of queries, keys and values, a residual.

Heads are divided among the `tp` ranks, tokens among the `cp` ranks. A rank of a context parallel group has
s/cp of the queries and meets all keys in turn; causal work is spread evenly over the group (each rank takes
one piece from the front of the sequence and one from the back, Llama 3, arXiv 2407.21783, section 3.3.2).

**Fused** (FlashAttention, arXiv 2205.14135 and 2307.08691): scores never reach memory, and tiles above the
diagonal are skipped. With K keys per query in the mean, tokens T and heads a of widths d (keys) and e
(values), the forward pass takes 2·T·K·a·(d + e) FLOP; the backward pass twice that, and 2·T·K·a·d more for
the scores, which it computes again. **Unfused**: four products on the full square of each head in the
backward pass, two in the forward pass, with scale, mask and softmax in one kernel between them, as in
Megatron-LM.

Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) projects down, norms, and projects up. Its down
projections are the same on all tensor parallel ranks.
"""

from mc.transformer.operation import Operation, Passes, Segment, Split, matmul
from mc.transformer.shape import Transformer

# Bytes of the softmax's statistic, one per query and head, that fused attention keeps.
STATISTIC_BYTES = 4.0


def attention_segment(shape: Transformer, split: Split) -> Segment:
    """The operations of one rank for attention on one micro-batch, its norms and residual included."""
    passes = Passes(split)
    stored = split.activation_bytes
    tokens, apart = split.tokens, split.tokens_apart
    heads, hidden = shape.heads / split.tp, shape.hidden
    kv_heads = local_kv_heads(shape, split.tp)
    key, value = shape.key_dim, shape.value_dim

    norm(passes, "attention norm", apart * hidden)
    if shape.mla is None:
        outputs = (heads + kv_heads) * key + kv_heads * value
        passes.linear("qkv", tokens, hidden, outputs, bias=shape.biases is not False)
    else:
        _latent_projections(passes, shape)
    if shape.qk_norm:
        norm(passes, "query and key norm", tokens * (heads + kv_heads) * key, residual=False)
    if shape.rotary:
        width = key if shape.mla is None else shape.mla.rope_dim
        moved = 2 * stored * tokens * (heads + (kv_heads if shape.mla is None else 1)) * width
        passes.memory("rotary", moved, moved)
    (_fused if split.fused_attention else _unfused)(passes, shape, heads, kv_heads)
    passes.linear(
        "attention projection", tokens, heads * value, hidden, bias=shape.biases in (True, "attention")
    )
    if shape.post_norms:
        norm(passes, "attention post-norm", apart * hidden, residual=False)
    residual(passes, "attention residual", apart * hidden, dropout=shape.dropout)
    return passes.segment("attention")


def local_kv_heads(shape: Transformer, tp: int) -> float:
    """Heads of keys and values on a rank: at least one, so some are on several ranks if there are few."""
    return max(1.0, shape.kv_heads / tp)


def norm(passes: Passes, name: str, values: float, *, residual: bool = True) -> None:
    """Read and write; back, read the gradient and the input, write, and add the gradient of the residual."""
    stored = passes.split.activation_bytes
    passes.memory(name, 2 * stored * values, (4 if residual else 3) * stored * values)


def residual(passes: Passes, name: str, values: float, *, dropout: bool) -> None:
    """Read both, write the sum; with dropout also its mask of a byte, which the backward pass applies."""
    stored = passes.split.activation_bytes
    mask = 1 if dropout else 0
    passes.memory(name, (3 * stored + mask) * values, (2 * stored + mask) * values if dropout else 0)


def _latent_projections(passes: Passes, shape: Transformer) -> None:
    split, mla = passes.split, shape.mla
    assert mla is not None
    tokens, apart, heads = split.tokens, split.tokens_apart, shape.heads / split.tp
    if mla.q_rank is None:
        passes.linear("query", tokens, shape.hidden, heads * shape.key_dim)
    else:
        passes.linear("query down", apart, shape.hidden, mla.q_rank)
        norm(passes, "query norm", apart * mla.q_rank, residual=False)
        passes.linear("query up", tokens, mla.q_rank, heads * shape.key_dim)
    passes.linear("key and value down", apart, shape.hidden, mla.kv_rank + mla.rope_dim)
    norm(passes, "key and value norm", apart * mla.kv_rank, residual=False)
    passes.linear("key and value up", tokens, mla.kv_rank, heads * (mla.nope_dim + mla.v_dim))


def _fused(passes: Passes, shape: Transformer, heads: float, kv_heads: float) -> None:
    split = passes.split
    key, value = shape.key_dim, shape.value_dim
    met = shape.keys(split.sequence_length, causal=True)
    pairs = split.tokens * met * heads
    # Keys and values come from the whole context parallel group.
    queries = split.tokens * heads
    pooled = split.micro_batch * split.sequence_length * kv_heads
    stored = split.activation_bytes
    size = stored * (queries * (key + value) + pooled * (key + value)) + STATISTIC_BYTES * queries
    rows, count = split.sequence_length / split.cp, split.micro_batch * heads
    flops = 2.0 * pairs * (key + value)
    passes.forward.append(
        Operation("attention", "attention", flops, size, rows, split.sequence_length, key, count)
    )
    # Reads both sides of the products and the gradient of the output, writes three gradients.
    size = stored * (queries * (2 * key + 2 * value) + 2 * pooled * (key + value)) + STATISTIC_BYTES * queries
    flops = 2.0 * pairs * (3 * key + 2 * value)
    passes.backward_input.append(
        Operation("attention", "attention", flops, size, rows, split.sequence_length, key, count)
    )


def _unfused(passes: Passes, shape: Transformer, heads: float, kv_heads: float) -> None:
    del kv_heads  # repeated for each query head before the products
    split = passes.split
    key, value, stored = shape.key_dim, shape.value_dim, split.activation_bytes
    rows, columns, count = split.sequence_length / split.cp, split.sequence_length, split.micro_batch * heads
    square = count * rows * columns
    forward, backward = passes.forward, passes.backward_input

    def product(name: str, m: float, n: float, k: float) -> Operation:
        return matmul(name, m, n, k, count, stored, stored)

    forward.append(product("scores", rows, columns, key))
    backward.append(product("scores", columns, key, rows))
    backward.append(product("scores", rows, key, columns))
    passes.memory("softmax", 2 * stored * square, 3 * stored * square)
    if shape.dropout:
        passes.memory("attention dropout", (2 * stored + 1) * square, (2 * stored + 1) * square)
    forward.append(product("context", rows, value, columns))
    backward.append(product("context", columns, value, rows))
    backward.append(product("context", rows, columns, value))
