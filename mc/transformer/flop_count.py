"""FLOP of a training step, by the conventions of the field.

Two per multiply and add. **Model** FLOP are those of one forward pass and twice that for the backward pass,
of every matrix product and of attention's two products; norms, softmax and the embedding's look-up do not
count. Per token 6 for each matrix weight that it meets, and 6·K·a·(d + e) per layer for attention, where a
query meets K keys with a heads of widths d (keys) and e (values).

For the GPT shape with full (not causal) attention and B sequences of s tokens this is
72·B·l·s·h²·(1 + s/(6h) + V/(12·l·h)) (Korthikanti et al. 2022, arXiv 2205.05198, equation 7).

**Causal.** A causal mask leaves half of the pairs of query and key. The Megatron papers, PaLM
(arXiv 2204.02311) and most published MFU count all of them, as if there were no mask (`causal=False`, the
default); FlashAttention's benchmarks and MFU by executed work count half (`causal=True`). Windows count as
K = window in the former convention.

**Hardware** FLOP add what runs again: the products of attention under selective recomputation, those of the parts
that a plan names, every layer under full recomputation (not the head), which makes 96·B·l·s·h²·(1 + s/(6h) + V/(16·l·h)) of it (SC21,
equation 3). With `fused` they also count the scores that fused attention computes again in its backward
pass, which no convention of HFU does, but the chip. (Korthikanti et al. give 1 + s/(3h) for selective
recomputation, which is twice the attention of a whole step; running its forward pass once more takes 1 +
s/(4.5h), as here.)
"""

from functools import lru_cache
from typing import NamedTuple

from mc.config.recompute import LAYER, Recompute, parts_of
from mc.transformer.shape import DENSE, MOE, Transformer


class Flops(NamedTuple):
    """FLOP of a step: as the model needs, and as they are executed."""

    model: float
    hardware: float


class _Forward(NamedTuple):
    """Forward FLOP per token.

    Attributes:
        blocks: of all their matrices.
        ends: of the matrices at the ends.
        per_key: of attention, for each key.
        scores_per_key: of that, its first product.
        up: of blocks, latent attention's projections up.
        mlp: of blocks, dense networks.
        experts: of blocks, router and experts.
    """

    blocks: float
    ends: float
    per_key: float
    scores_per_key: float
    up: float
    mlp: float
    experts: float


def flops(
    shape: Transformer,
    sequence_length: float,
    sequences: float = 1,
    recompute: Recompute = "none",
    *,
    causal: bool = False,
    fused: bool = False,
    recomputed: float = 1.0,
) -> Flops:
    """FLOP of one training step over `sequences` sequences.

    Args:
        shape: the model; blocks that predict further tokens count.
        sequence_length: tokens of one sequence.
        sequences: the global batch.
        recompute: what runs again before the backward pass.
        causal: whether pairs that the mask removes are left out.
        fused: whether `hardware` counts the scores that fused attention's backward pass computes again.
        recomputed: part of the layers in which it does.
    """
    forward = _forward(shape)
    tokens = float(sequences) * sequence_length
    keys = shape.keys(sequence_length, causal=causal)
    attention = tokens * keys * forward.per_key
    blocks, ends = tokens * forward.blocks, tokens * forward.ends
    model = 3 * (blocks + ends + attention)
    parts = parts_of(recompute)
    if LAYER in parts:
        again = blocks + attention
    else:
        found = {"attention": attention, "mla_up": tokens * forward.up}
        found |= {"mlp": tokens * forward.mlp, "experts": tokens * forward.experts}
        again = sum(part for name, part in found.items() if name in parts)
    scores = tokens * keys * forward.scores_per_key if fused else 0.0
    return Flops(model, model + recomputed * again + scores)


@lru_cache(maxsize=1024)
def _forward(shape: Transformer) -> _Forward:
    hidden, heads, mla, experts = shape.hidden, shape.heads, shape.mla, shape.experts
    key, value = shape.key_dim, shape.value_dim
    weights, up, both = heads * value * hidden, 0, {DENSE: 0, MOE: 0}
    if mla is None:
        weights += hidden * (heads * key + shape.kv_heads * (key + value))
    else:
        up = (hidden if mla.q_rank is None else mla.q_rank) * key * heads
        up += mla.kv_rank * heads * (mla.nope_dim + value)
        weights += up + hidden * ((mla.q_rank or 0) + mla.kv_rank + mla.rope_dim)
    for kind, count in shape.kind_counts.items():
        network = shape.matrices * hidden * shape.ffn
        if kind == MOE and experts is not None:
            visited = experts.top_k * experts.ffn + experts.shared_ffn
            network = hidden * (shape.matrices * visited + experts.count)
        both[kind] += count * network
    ends = hidden * shape.vocab * (1 + shape.mtp_layers) + 2 * hidden * hidden * shape.mtp_layers
    layers = shape.layers + shape.mtp_layers
    return _Forward(
        blocks=2.0 * (layers * weights + sum(both.values())),
        ends=2.0 * ends,
        per_key=2.0 * layers * heads * (key + value),
        scores_per_key=2.0 * layers * heads * key,
        up=2.0 * layers * up,
        mlp=2.0 * both[DENSE],
        experts=2.0 * both[MOE],
    )
