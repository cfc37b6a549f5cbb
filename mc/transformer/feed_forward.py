"""The operations of a feed-forward network: dense, or with experts.

Dense: norm, up (with the gate beside it in one product), activation function, down, residual.

Experts see the **mean load**: each of the E experts gets top_k/E of the tokens. A rank brings T tokens
(those of its sequence parallel part); the `etp` ranks that share an expert pool theirs, so a rank computes
T·etp·top_k token visits in E/ep products, each by a matrix cut into `etp` parts. Whoever knows how routing
falls out scales the `experts` operations by the load over the mean (`EXPERT_NAMES`). Shared experts are a
dense network beside, cut by `tp`; the router scores whole tokens.
"""

from mc.transformer.attention import norm, residual
from mc.transformer.operation import Passes, Segment, Split
from mc.transformer.shape import Transformer

# The operations whose time goes with the token visits that a rank gets.
EXPERT_NAMES = frozenset(
    f"expert {name}"
    for name in ("order", "up", "up convert", "activation", "down", "down convert", "up bias", "down bias")
)
# Router scores are computed and kept in fp32: written, normalised, searched for the best.
ROUTER_BYTES = 4 * 4.0


def mlp_segment(shape: Transformer, split: Split) -> Segment:
    """The operations of one rank for a dense network on one micro-batch, its norm and residual included."""
    passes = Passes(split)
    values = split.tokens_apart * shape.hidden
    norm(passes, "mlp norm", values)
    _network(passes, shape, "mlp", split.tokens, shape.ffn / split.tp)
    _end(passes, shape, "mlp", values)
    return passes.segment("mlp")


def experts_segment(shape: Transformer, split: Split) -> Segment:
    """The operations of one rank for a layer's router and experts under the mean load."""
    experts = shape.experts
    assert experts is not None
    passes = Passes(split)
    stored, hidden = split.activation_bytes, shape.hidden
    routed = routed_tokens(split)
    visits = routed * split.etp * experts.top_k
    norm(passes, "experts norm", split.tokens_apart * hidden)
    passes.linear("router", routed, hidden, experts.count)
    passes.memory("router", ROUTER_BYTES * routed * experts.count, ROUTER_BYTES * routed * experts.count)
    # A copy of each token per visit, in the order of their destinations; back, they are added up.
    copies = stored * routed * hidden * (1 + experts.top_k)
    passes.memory("dispatch copy", copies, copies)
    arrived = 2 * stored * visits * hidden
    passes.memory("expert order", arrived, arrived)
    local = experts.count / split.ep
    _network(passes, shape, "expert", visits / local, experts.ffn / split.etp, count=local)
    passes.memory("expert order", arrived, arrived)
    passes.memory("combine copy", copies, copies)
    if experts.shared_ffn:
        _network(passes, shape, "shared", split.tokens, experts.shared_ffn / split.tp)
        added = 3 * stored * split.tokens_apart * hidden
        passes.memory("shared sum", added, added)
    _end(passes, shape, "experts", split.tokens_apart * hidden)
    return passes.segment("experts")


def routed_tokens(split: Split) -> float:
    """Tokens that a rank brings to the experts; its tensor parallel peers bring the others."""
    return split.tokens / split.tp


def _network(
    passes: Passes, shape: Transformer, name: str, rows: float, width: float, *, count: float = 1
) -> None:
    stored, bias = passes.split.activation_bytes, shape.biases is True
    # Up and gate are one product.
    inner = (2 if shape.gated else 1) * width
    passes.linear(f"{name} up", rows, shape.hidden, inner, count=count, bias=bias)
    values = stored * count * rows
    # Back: the gradient and what came in are read, the gradient of what came in is written.
    passes.memory(f"{name} activation", values * (inner + width), values * (2 * inner + width))
    passes.linear(f"{name} down", rows, width, shape.hidden, count=count, bias=bias)


def _end(passes: Passes, shape: Transformer, name: str, values: float) -> None:
    if shape.post_norms:
        norm(passes, f"{name} post-norm", values, residual=False)
    residual(passes, f"{name} residual", values, dropout=shape.dropout)
