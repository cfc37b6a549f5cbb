"""The shape of a transformer as the engine wants it: frozen, hashable, with what follows from it.

`layer_kinds` tells the layers apart that differ in parameters, work or messages: `dense` ones and those with
experts, `moe`. Windows of attention are the exception: where some layers have one and others do not, each
layer counts with the mean of all. Sums over the model are exact that way; a single layer is not.
"""

from dataclasses import dataclass
from functools import cached_property

from mc.config.transformer import Biases, TransformerConfig

DENSE = "dense"
MOE = "moe"


@dataclass(frozen=True)
class LatentAttention:
    """Widths of multi-head latent attention, as in `LatentAttentionConfig`."""

    q_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int


@dataclass(frozen=True)
class Experts:
    """What a layer with experts has, as in `ExpertsConfig`."""

    count: int
    top_k: int
    ffn: int
    shared: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    every: int = 1
    groups: int = 1
    group_limit: int = 1


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer; the fields are those of `TransformerConfig`, all filled in."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    tied_embeddings: bool = False
    biases: Biases = False
    norm: str = "rms"
    post_norms: bool = False
    qk_norm: bool = False
    max_positions: int = 0
    rotary: bool = True
    window: int | None = None
    chunked: bool = False
    full_every: int | None = None
    dropout: bool = False
    mla: LatentAttention | None = None
    experts: Experts | None = None
    mtp_layers: int = 0

    def __hash__(self) -> int:
        """That of the fields, once: shapes are keys of many caches."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))

    @cached_property
    def layer_kinds(self) -> tuple[str, ...]:
        """`dense` or `moe`, for each of the `layers`."""
        experts = self.experts
        if experts is None:
            return (DENSE,) * self.layers
        return tuple(
            MOE if index >= experts.dense_layers and (index + 1) % experts.every == 0 else DENSE
            for index in range(self.layers)
        )

    @cached_property
    def mtp_kinds(self) -> tuple[str, ...]:
        """The kinds of the blocks that predict further tokens: copies of the last layer.

        They are computed where the head is, in addition to the `layers`.
        """
        return self.layer_kinds[-1:] * self.mtp_layers

    @cached_property
    def kind_counts(self) -> dict[str, int]:
        """How many blocks of each kind are trained, those that predict further tokens included."""
        blocks = self.layer_kinds + self.mtp_kinds
        return {kind: blocks.count(kind) for kind in dict.fromkeys(blocks)}

    @property
    def key_dim(self) -> int:
        """Width of one head's query and key."""
        return self.head_dim if self.mla is None else self.mla.nope_dim + self.mla.rope_dim

    @property
    def value_dim(self) -> int:
        """Width of one head's value."""
        return self.head_dim if self.mla is None else self.mla.v_dim

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward network."""
        return 3 if self.gated else 2

    @cached_property
    def full_share(self) -> float:
        """The part of the layers that attend without a window."""
        if self.window is None:
            return 1.0
        return 0.0 if self.full_every is None else (self.layers // self.full_every) / self.layers

    def keys(self, sequence_length: float, *, causal: bool) -> float:
        """Keys that a query meets, in the mean over queries and layers.

        With s tokens: s if not `causal`, else s/2, the convention of FlashAttention (the diagonal counts
        half). In a window of w < s tokens: w, and w(1 - w/2s) if causal, since the first w queries meet
        fewer; in chunks of w: w, and w/2 if causal.
        """
        full = sequence_length / 2 if causal else sequence_length
        window, share = self.window, self.full_share
        if window is None or window >= sequence_length:
            return full
        if self.chunked:
            rest = sequence_length % window
            inside = ((sequence_length - rest) * window + rest * rest) / sequence_length
            inside = inside / 2 if causal else inside
        else:
            inside = window * (1 - window / (2 * sequence_length)) if causal else window
        return share * full + (1 - share) * inside


def build_transformer(config: TransformerConfig) -> Transformer:
    """The shape that a configuration describes."""
    mla, experts = config.mla, config.experts
    return Transformer(
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.heads if mla is not None else config.kv_heads,
        head_dim=config.head_dim,
        ffn=config.ffn or 0,
        vocab=config.vocab,
        gated=config.gated,
        tied_embeddings=config.tied_embeddings,
        biases=config.biases,
        norm=config.norm,
        post_norms=config.post_norms,
        qk_norm=config.qk_norm,
        max_positions=config.max_positions or 0,
        rotary=config.positions == "rotary",
        window=config.window,
        chunked=config.chunked,
        full_every=config.full_every,
        dropout=config.dropout,
        mla=None if mla is None else LatentAttention(**mla.model_dump()),
        experts=None if experts is None else Experts(**experts.model_dump()),
        mtp_layers=config.mtp_layers,
    )
