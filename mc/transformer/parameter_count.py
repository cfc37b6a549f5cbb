"""How many parameters a model has, and how many of them one rank holds.

With h hidden, a heads of width d, g heads of keys and values, f the network's width and V the vocabulary, a
layer of the GPT shape (a·d = h, g = a, f = 4h, no gate, biases everywhere, two norms) has 12h² + 13h, and
with embedding and learned positions the model has 12·l·h²·(1 + 13/(12h) + (V + s)/(12·l·h)), equation 2 of
Narayanan et al. (SC21, arXiv 2104.04473), but for its final norm of 2h.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mc.transformer.shape import DENSE, MOE, Transformer


@dataclass(frozen=True)
class Parameters:
    """Parameters of a model, as numbers of weights.

    Attributes:
        total: all, without the blocks that predict further tokens.
        active: those that one token meets; of a layer's experts the `top_k`.
        embedding: the matrix of tokens.
        positions: the matrix of learned positions.
        head: the output matrix; 0 if it is the embedding.
        final_norm: the norm before the head.
        attention: of one layer, biases included.
        norms: of one layer, those of queries and keys included.
        dense_ffn: of one layer without experts.
        expert: one expert.
        shared: the shared experts of a layer.
        router: of a layer.
        mtp: all that only predicts further tokens, without embedding and head, which are shared.
        experts_of_a_layer: how many there are.
    """

    total: int
    active: int
    embedding: int
    positions: int
    head: int
    final_norm: int
    attention: int
    norms: int
    dense_ffn: int
    expert: int
    shared: int
    router: int
    mtp: int
    experts_of_a_layer: int


class Held(NamedTuple):
    """Parameters of one rank: those of its layers and ends, and those of its experts."""

    dense: float
    experts: float


@lru_cache(maxsize=1024)
def parameters(shape: Transformer) -> Parameters:
    """The parameters of a model."""
    hidden, experts = shape.hidden, shape.experts
    attention = sum(_attention(shape))
    one_norm = (2 if shape.norm == "layer" else 1) * hidden
    # What attention's own norms have has no bias.
    norms = (4 if shape.post_norms else 2) * one_norm + (2 * shape.key_dim if shape.qk_norm else 0)
    dense_ffn = sum(_network(shape, shape.ffn))
    embedding = shape.vocab * hidden
    head = 0 if shape.tied_embeddings else embedding
    expert = shared = router = visited = count = 0
    if experts is not None:
        expert, shared = sum(_network(shape, experts.ffn)), sum(_network(shape, experts.shared_ffn))
        router = experts.count * hidden
        count, visited = experts.count, experts.top_k
        shared = shared if experts.shared_ffn else 0
    layers = {
        DENSE: attention + norms + dense_ffn,
        MOE: attention + norms + router + shared + count * expert,
    }
    ends = embedding + head + shape.max_positions * hidden + one_norm
    total = ends + sum(layers[kind] for kind in shape.layer_kinds)
    idle = (count - visited) * expert * shape.layer_kinds.count(MOE)
    # Per block: the projection of two vectors, their norms, and a final norm of its own.
    mtp = sum(layers[kind] + 2 * hidden * hidden + 3 * one_norm for kind in shape.mtp_kinds)
    return Parameters(
        total=total,
        active=total - idle,
        embedding=embedding,
        positions=shape.max_positions * hidden,
        head=head,
        final_norm=one_norm,
        attention=attention,
        norms=norms,
        dense_ffn=dense_ffn,
        expert=expert,
        shared=shared,
        router=router,
        mtp=mtp,
        experts_of_a_layer=count,
    )


def held(
    shape: Transformer,
    layers: Sequence[int],
    *,
    first: bool,
    last: bool,
    tp: int = 1,
    ep: int = 1,
    etp: int = 1,
) -> Held:
    """Parameters that one rank of a pipeline stage holds, before data parallel ranks shard anything.

    Tensor parallelism divides matrices, the vocabulary and the biases of what it divides by columns. Norms,
    the router, learned positions, other biases, latent attention's down projections and the projections of
    further tokens are on each rank; so are heads of keys and values once there are fewer than ranks.

    Args:
        shape: the model.
        layers: indices of the layers of the stage.
        first: whether it has the embedding.
        last: whether it has the head, and the blocks that predict further tokens. A tied head on another
            stage than the embedding is a copy of it.
        tp: ranks that share each matrix.
        ep: ranks that share the experts.
        etp: ranks that share each expert.
    """
    kinds = shape.layer_kinds
    with_experts = sum(1 for index in layers if kinds[index] == MOE)
    blocks = {MOE: with_experts, DENSE: len(layers) - with_experts}
    count = parameters(shape)
    dense = 0.0
    if first:
        dense += count.embedding / tp + count.positions
    if last:
        dense += count.final_norm + (0 if first and shape.tied_embeddings else count.embedding / tp)
        for kind in shape.mtp_kinds:
            blocks[kind] += 1
            dense += 2 * shape.hidden**2 + 3 * count.final_norm
    per_kind, per_expert = _held_by_a_layer(shape, tp, etp)
    dense += blocks[DENSE] * per_kind[0] + blocks[MOE] * per_kind[1]
    return Held(dense, blocks[MOE] * count.experts_of_a_layer / ep * per_expert)


@lru_cache(maxsize=4096)
def _held_by_a_layer(shape: Transformer, tp: int, etp: int) -> tuple[tuple[float, float], float]:
    """What a rank holds of a dense layer, of one with experts but for them, and of one expert."""
    count = parameters(shape)
    divided, pooled, whole = _attention(shape)
    attention = divided / tp + pooled / min(tp, shape.kv_heads) + whole + count.norms
    divided, whole = _network(shape, shape.ffn)
    dense = attention + divided / tp + whole
    if shape.experts is None:
        return (dense, 0.0), 0.0
    divided, whole = _network(shape, shape.experts.ffn)
    expert = divided / etp + whole
    divided, whole = _network(shape, shape.experts.shared_ffn)
    shared = divided / tp + whole if shape.experts.shared_ffn else 0.0
    return (dense, attention + count.router + shared), expert


def _attention(shape: Transformer) -> tuple[int, int, int]:
    """Parameters of a layer's attention: divided by heads, by heads of keys and values, and not divided."""
    hidden, heads = shape.hidden, shape.heads
    key, value, mla = shape.key_dim, shape.value_dim, shape.mla
    out = heads * value * hidden
    if mla is not None:
        divided = out + mla.kv_rank * heads * (mla.nope_dim + value)
        whole = hidden * (mla.kv_rank + mla.rope_dim) + mla.kv_rank
        if mla.q_rank is None:
            return divided + hidden * heads * key, 0, whole
        return divided + mla.q_rank * heads * key, 0, whole + hidden * mla.q_rank + mla.q_rank
    pooled = shape.kv_heads * (key + value)
    biases = shape.biases is not False
    divided = out + hidden * heads * key + (heads * key if biases else 0)
    return (
        divided,
        hidden * pooled + (pooled if biases else 0),
        hidden if shape.biases in (True, "attention") else 0,
    )


def _network(shape: Transformer, width: int) -> tuple[int, int]:
    """Parameters of a feed-forward network: divided by columns or rows, and not divided."""
    divided = shape.matrices * shape.hidden * width
    if shape.biases is not True:
        return divided, 0
    return divided + (shape.matrices - 1) * width, shape.hidden
