"""What a rank computes for one layer when a model serves, with its bytes by what they are.

Of T tokens of B sequences with q each (decoding: the last token, and those guessed ahead; prefilling: the prompt). A
matrix is read once, however many tokens there are, so with few of them a step takes the time of reading all weights;
attention reads what the cache holds of each sequence, so its time goes with batch x context:

    bytes of a matrix product = k·n weights + T·(k + n) activations
    bytes of attention        = B·K keys and values of the cache + queries and outputs.

**Latent attention** keeps one vector of kv_rank + rope_dim numbers per token, on each of the tp ranks. Decoding does not
project it up: queries are multiplied by the projection instead (the matrix is *absorbed*), and attention goes on as if
there were one head of keys, kv_rank + rope_dim wide, whose first kv_rank are the values (DeepSeek-V2, arXiv 2405.04434,
section 2.1.2). Prefilling projects up.

**Experts** that no token chooses are not read: of n experts of a rank, a token of T misses one with probability 1 − k/E, so
n·(1 − (1 − k/E)^T) are read in the mean.
"""

from typing import Literal, NamedTuple

from mc.config.names import FORMAT_BYTES
from mc.config.serving import ServingFormatsConfig
from mc.inference.layout import Layout
from mc.transformer import MOE, Transformer

Kind = Literal["matmul", "attention", "memory"]


class Operation(NamedTuple):
    """One kernel, or `count` alike; `flops` and bytes are those of all together.

    Attributes:
        name: what it computes.
        kind: what its time follows from.
        weights: bytes.
        cache: bytes of keys and values.
        activations: bytes.
        flops: of its products.
        m: rows of the result; of attention, queries that share a head of keys.
        n: columns of the result.
        k: what is summed over.
        copies: how many products.
        format: of a product; that of the mathematics if None.
        routed: whether its rows go with the tokens that a rank's experts get.
    """

    name: str
    kind: Kind
    weights: float = 0.0
    cache: float = 0.0
    activations: float = 0.0
    flops: float = 0.0
    m: float = 0.0
    n: float = 0.0
    k: float = 0.0
    copies: float = 1.0
    format: str | None = None
    routed: bool = False

    def loaded(self, load: float) -> "Operation":
        """With so many times the rows; weights stay."""
        return self._replace(activations=load * self.activations, flops=load * self.flops, m=load * self.m)


class Tokens(NamedTuple):
    """What passes through a layer at once, on one of the dp groups.

    Attributes:
        sequences: how many.
        queries: tokens of each.
        keys: that a query meets, in the mean.
        is_prompt: whether keys are those of the same pass, and latent attention projects them up.
    """

    sequences: float
    queries: float
    keys: float
    is_prompt: bool

    @property
    def total(self) -> float:
        """Tokens in all."""
        return self.sequences * self.queries


class Layer:
    """Collects the operations of a layer of one kind."""

    def __init__(self, shape: Transformer, layout: Layout, formats: ServingFormatsConfig, tokens: Tokens):
        """Args: those of the layer."""
        self.shape, self.layout, self.tokens = shape, layout, tokens
        self.operand, self.stored = (FORMAT_BYTES[each] for each in (formats.math, formats.activations))
        self.weight, self.cached = (FORMAT_BYTES[each] for each in (formats.weights, formats.cache))
        self.formats = formats
        self.found: list[Operation] = []

    def linear(
        self,
        name: str,
        rows: float,
        inputs: float,
        outputs: float,
        *,
        copies: float = 1.0,
        read: float | None = None,
        routed: bool = False,
    ) -> None:
        """`copies` matrices of `inputs` by `outputs`, each on so many rows; `read` of them are read."""
        moved = copies * rows * (self.operand * inputs + self.stored * outputs)
        weights = self.weight * (copies if read is None else read) * inputs * outputs
        flops = 2.0 * copies * rows * inputs * outputs
        self.found.append(
            Operation(name, "matmul", weights, 0.0, moved, flops, rows, outputs, inputs, copies, None, routed)
        )

    def memory(self, name: str, numbers: float, *, cache: float = 0.0, routed: bool = False) -> None:
        """An operation that moves so many numbers of activations, and bytes of the cache."""
        self.found.append(Operation(name, "memory", 0.0, cache, self.stored * numbers, routed=routed))

    def attention(self) -> None:
        """Norm, projections, the products with keys and values, projection back."""
        shape, tokens = self.shape, self.tokens
        heads = shape.heads / self.layout.tp
        kv_heads = max(1.0, shape.kv_heads / self.layout.tp)
        count, hidden = tokens.total, shape.hidden
        self.memory("attention norm", 3 * count * hidden)
        if shape.mla is None:
            self.linear("qkv", count, hidden, (heads + kv_heads) * shape.key_dim + kv_heads * shape.value_dim)
            written = count * kv_heads * (shape.key_dim + shape.value_dim)
            self.memory("rotary", 2 * count * (heads + kv_heads) * shape.key_dim, cache=self.cached * written)
            self._products(heads, kv_heads, shape.key_dim, shape.value_dim, shape.value_dim)
        else:
            self._latent(heads)
        self.linear("attention projection", count, heads * shape.value_dim, hidden)

    def _latent(self, heads: float) -> None:
        shape, tokens, mla = self.shape, self.tokens, self.shape.mla
        assert mla is not None
        count, hidden, latent = tokens.total, shape.hidden, mla.kv_rank + mla.rope_dim
        if mla.q_rank is None:
            self.linear("query and latent down", count, hidden, heads * shape.key_dim + latent)
        else:
            # The two projections down read the same input, as one product.
            self.linear("query and latent down", count, hidden, mla.q_rank + latent)
            self.linear("query up", count, mla.q_rank, heads * shape.key_dim)
        self.memory("rotary", 2 * count * (heads * mla.rope_dim + latent), cache=self.cached * count * latent)
        if tokens.is_prompt:
            self.linear("key and value up", count, mla.kv_rank, heads * (mla.nope_dim + mla.v_dim))
            self._products(heads, heads, shape.key_dim, mla.v_dim, mla.v_dim)
            return
        self.linear("query to latent", count, mla.nope_dim, mla.kv_rank, copies=heads)
        self._products(heads, 1.0, latent, mla.kv_rank, 0.0)
        self.linear("latent to value", count, mla.kv_rank, mla.v_dim, copies=heads)

    def _products(self, heads: float, kv_heads: float, key: float, value: float, values_read: float) -> None:
        """Of queries with keys and values, of which each head of keys has `key` + `values_read` numbers."""
        tokens = self.tokens
        rows = tokens.total * heads
        flops = 2.0 * rows * tokens.keys * (key + value)
        numbers = kv_heads * (key + values_read)
        if tokens.is_prompt:
            # Keys and values that were just computed.
            cache, moved = 0.0, rows * (key + value) + tokens.total * numbers
        else:
            cache, moved = self.cached * tokens.sequences * tokens.keys * numbers, rows * (key + value)
        self.found.append(
            Operation(
                "attention",
                "attention",
                0.0,
                cache,
                self.stored * moved,
                flops,
                tokens.queries * heads / kv_heads,
                tokens.keys,
                key,
                tokens.sequences * kv_heads,
                self.formats.attention,
            )
        )

    def network(
        self,
        name: str,
        rows: float,
        width: float,
        *,
        copies: float = 1.0,
        read: float | None = None,
        routed: bool = False,
    ) -> None:
        """Up (with the gate), activation function, down."""
        inner = (2 if self.shape.gated else 1) * width
        self.linear(f"{name} up", rows, self.shape.hidden, inner, copies=copies, read=read, routed=routed)
        self.memory(f"{name} activation", copies * rows * (inner + width), routed=routed)
        self.linear(f"{name} down", rows, width, self.shape.hidden, copies=copies, read=read, routed=routed)

    def mlp(self) -> None:
        """A dense network."""
        self.memory("mlp norm", 3 * self.tokens.total * self.shape.hidden)
        self.network("mlp", self.tokens.total, self.shape.ffn / self.layout.tp)

    def experts(self) -> None:
        """Router, experts under the mean load, shared experts."""
        experts, layout, hidden = self.shape.experts, self.layout, self.shape.hidden
        assert experts is not None
        count = self.tokens.total
        self.memory("experts norm", 3 * count * hidden)
        self.linear("router", count, hidden, experts.count)
        local = layout.local_experts(self.shape)
        everyone = count * layout.dp
        read = local * (1.0 - (1.0 - experts.top_k / (experts.count + layout.copies)) ** everyone)
        visits = everyone * experts.top_k / layout.ep
        self.memory("expert order", 2 * visits * hidden, routed=True)
        # Rows are those of an expert that has some.
        self.network("expert", visits / read, experts.ffn / layout.etp, copies=read, routed=True)
        self.memory("combine", count * hidden * (1 + experts.top_k))
        if experts.shared_ffn:
            self.network("shared", count, experts.shared_ffn / layout.tp)


def layer_operations(
    shape: Transformer, kind: str, layout: Layout, formats: ServingFormatsConfig, tokens: Tokens
) -> tuple[Operation, ...]:
    """The operations of a rank for one layer of a kind."""
    layer = Layer(shape, layout, formats, tokens)
    layer.attention()
    if kind == MOE:
        layer.experts()
    else:
        layer.mlp()
    return tuple(layer.found)


def end_operations(
    shape: Transformer, layout: Layout, formats: ServingFormatsConfig, tokens: Tokens
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """Those of the embedding, and of the head: logits of the tokens that are asked for, and choosing one.

    Logits are computed in the format of activations, from weights in it.
    """
    hidden = shape.hidden
    first = Layer(shape, layout, formats, tokens)
    first.memory("embedding", 2 * tokens.total * hidden)
    asked = tokens.sequences * (1.0 if tokens.is_prompt else tokens.queries)
    logits = shape.vocab / layout.tp
    stored = first.stored
    head = Operation(
        "logits",
        "matmul",
        stored * hidden * logits,
        0.0,
        stored * asked * (hidden + logits),
        2.0 * asked * hidden * logits,
        asked,
        logits,
        hidden,
        1.0,
        formats.activations,
    )
    last = Layer(shape, layout, formats, tokens)
    last.memory("final norm", 3 * asked * hidden)
    last.found.append(head)
    last.memory("choice of tokens", 2 * asked * logits)
    return tuple(first.found), tuple(last.found)
