"""The shape of a transformer: the numbers that fix its parameters, its work and its messages.

Decoder-only language models: `layers` blocks of attention and feed-forward network between an embedding and
an output head. Names are those of the papers and of Hugging Face's `config.json` where the two agree; what
follows from other fields may be left out and is filled in, so that the resolved file carries every number.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mc.document import StrictModel, located

Count = Annotated[int, Field(ge=1)]
_BIASES = ("qkv", "attention")


def _read_biases(value: Any) -> Any:
    if isinstance(value, bool) or value in _BIASES:
        return value
    raise ValueError(f"expected true, false, `qkv` or `attention`; got {str(value)[:40]!r}")


Biases = Annotated[bool | Literal["qkv", "attention"], BeforeValidator(_read_biases)]


class LatentAttentionConfig(StrictModel):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and values from one short vector.

    Attributes:
        q_rank: width that queries are projected down to; left out for queries projected directly.
        kv_rank: width of the vector that keys and values come from.
        nope_dim: width of a head's query and key without position.
        rope_dim: width of the part with rotary position, which all heads share on the side of the keys.
        v_dim: width of a head's value.
    """

    q_rank: Count | None = None
    kv_rank: Count
    nope_dim: Count
    rope_dim: Count
    v_dim: Count


class ExpertsConfig(StrictModel):
    """Feed-forward networks of which each token visits a few.

    Attributes:
        count: experts of a layer.
        top_k: how many of them a token visits.
        ffn: width of one.
        shared: experts that every token visits besides.
        shared_ffn: their width, all together; `ffn * shared` if left out.
        dense_layers: the first layers have no experts.
        every: of the others, layers `every`, `2 * every`, ... have them, counted from 1.
        groups: parts that the experts are divided into for routing.
        group_limit: of how many groups a token may visit experts.
    """

    count: Count
    top_k: Count
    ffn: Count
    shared: Annotated[int, Field(ge=0)] = 0
    shared_ffn: Annotated[int, Field(ge=0)] = Field(default_factory=lambda data: data["ffn"] * data["shared"])
    dense_layers: Annotated[int, Field(ge=0)] = 0
    every: Count = 1
    groups: Count = 1
    group_limit: Count = Field(default_factory=lambda data: data["groups"])

    @model_validator(mode="after")
    def _check(self) -> "ExpertsConfig":
        found: list[tuple[tuple[str | int, ...], str]] = []
        if self.top_k > self.count:
            found.append(
                (("top_k",), f"expected at most {self.count}, the number of experts; got {self.top_k}")
            )
        if bool(self.shared) != bool(self.shared_ffn):
            text = "expected `shared` and `shared_ffn` both positive or both 0"
            found.append((("shared",), f"{text}; got {self.shared} and {self.shared_ffn}"))
        if self.count % self.groups:
            text = f"expected a divisor of {self.count}, the number of experts"
            found.append((("groups",), f"{text}; got {self.groups}"))
        elif self.group_limit > self.groups:
            text = f"expected at most {self.groups}, the number of groups"
            found.append((("group_limit",), f"{text}; got {self.group_limit}"))
        elif self.top_k <= self.count and self.top_k > self.group_limit * (self.count // self.groups):
            inside = self.group_limit * (self.count // self.groups)
            text = (
                f"expected enough groups for {self.top_k} experts; {self.group_limit} of them have {inside}"
            )
            found.append((("group_limit",), text))
        if found:
            raise located("ExpertsConfig", found)
        return self


class TransformerConfig(StrictModel):
    """A decoder-only transformer.

    Attributes:
        layers: how many blocks.
        hidden: width of the residual stream.
        heads: query heads of a layer.
        kv_heads: heads of keys and values, which groups of query heads share; `heads` if left out.
        mla: latent attention instead; `kv_heads` and `head_dim` then play no part.
        head_dim: width of a head; `hidden / heads` if left out.
        ffn: width of a dense feed-forward network; may be left out where every layer has experts.
        gated: whether the network has a gate (three matrices, as SwiGLU) or not (two).
        vocab: rows of the embedding, with padding if it is trained with padding.
        tied_embeddings: whether the output head is the embedding.
        biases: which matrices have biases: all, those of `attention`, of its inputs (`qkv`), or none.
        norm: `rms` has a weight, `layer` a weight and a bias.
        post_norms: whether attention and network have a norm behind them, too.
        qk_norm: whether each head's queries and keys are normalised.
        positions: `rotary` without parameters, or `learned`.
        max_positions: rows of the learned positions.
        window: keys that a query sees at most; all before it if left out.
        chunked: whether the window is a fixed chunk of the sequence instead of the keys just before.
        full_every: layers `full_every`, `2 * full_every`, ... see everything despite the window.
        dropout: whether attention and residuals are trained with dropout.
        experts: in place of the dense network in some or all layers.
        mtp_layers: blocks that predict further tokens while training (DeepSeek-V3, arXiv 2412.19437); each
            is a copy of the last block behind a projection from two hidden vectors, and shares the
            embedding and the head.
    """

    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Count = Field(default_factory=lambda data: data["heads"])
    mla: LatentAttentionConfig | None = None
    head_dim: Count = Field(default_factory=lambda data: max(1, data["hidden"] // data["heads"]))
    ffn: Count | None = None
    gated: bool = True
    vocab: Count
    tied_embeddings: bool = False
    biases: Biases = False
    norm: Literal["rms", "layer"] = "rms"
    post_norms: bool = False
    qk_norm: bool = False
    positions: Literal["rotary", "learned"] = "rotary"
    max_positions: Count | None = None
    window: Count | None = None
    chunked: bool = False
    full_every: Annotated[int, Field(ge=2)] | None = None
    dropout: bool = False
    experts: ExpertsConfig | None = None
    mtp_layers: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _check(self) -> "TransformerConfig":
        found = [*self._attention(), *self._network()]
        if found:
            raise located("TransformerConfig", found)
        return self

    def _attention(self) -> list[tuple[tuple[str | int, ...], str]]:
        found: list[tuple[tuple[str | int, ...], str]] = []
        if self.mla is None and self.heads % self.kv_heads:
            text = f"expected a divisor of {self.heads}, the number of heads; got {self.kv_heads}"
            found.append((("kv_heads",), text))
        if self.mla is None and "head_dim" not in self.model_fields_set and self.hidden % self.heads:
            text = f"expected `head_dim`, since {self.hidden} / {self.heads} heads is no whole number"
            found.append((("heads",), text))
        if self.mla is not None and self.biases is not False:
            text = (
                f"expected none beside `mla`, whose biases are not modelled; got {str(self.biases).lower()}"
            )
            found.append((("biases",), text))
        if self.positions == "learned" and self.max_positions is None:
            found.append((("positions",), "expected `max_positions` beside learned positions; got none"))
        if self.positions != "learned" and self.max_positions is not None:
            text = f"expected none beside {self.positions} positions; got {self.max_positions}"
            found.append((("max_positions",), text))
        if self.window is None and self.chunked:
            found.append((("chunked",), "expected a `window` beside it; got none"))
        if self.window is None and self.full_every is not None:
            found.append((("full_every",), "expected a `window` beside it; got none"))
        return found

    def _network(self) -> list[tuple[tuple[str | int, ...], str]]:
        if self.experts is None:
            return [((), "expected `ffn` or `experts`; got neither")] if self.ffn is None else []
        first = self.experts.every * (self.experts.dense_layers // self.experts.every + 1)
        if first > self.layers:
            text = f"expected experts in some layer; with dense_layers {self.experts.dense_layers} and every "
            return [(("experts",), f"{text}{self.experts.every} none of {self.layers} layers has them")]
        if self.ffn is None and (self.experts.dense_layers or self.experts.every > 1):
            return [((), "expected `ffn`, since some layers have no experts; got none")]
        return []
