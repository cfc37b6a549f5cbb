"""Messages inside of a replica, but for those of experts: products (`tp`), attention (`cp`), stages (`pp`)."""

from collections.abc import Iterator

from mc.config.names import FORMAT_BYTES
from mc.config.recompute import LAYER
from mc.parallel.message import Behind, Message, Where
from mc.parallel.passes import Dimension, Passes, repeats
from mc.parallel.plan import Plan
from mc.transformer import Transformer

_FP32 = 4.0
# Of the loss among ranks that share the vocabulary: the largest logit, the sum of exponentials, the target's logit.
_LOSS_REDUCTIONS = 3
_BOTH_WAYS: tuple[tuple[str, Where], ...] = (("activations", "forward"), ("gradients", "backward"))


def tensor_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Of products that are divided: in front of and behind attention and networks."""
    if plan.tp == 1:
        return
    dimension = Dimension("tp", plan.groups.tp, passes)
    width = FORMAT_BYTES[plan.formats.tensor]
    whole = plan.split.tokens * shape.hidden * width
    # Latent attention gathers what it has projected down.
    entering = whole if shape.mla is None else _latent_width(shape) * plan.split.tokens * width
    yield from _block(plan, dimension, "attention", whole, entering)
    yield from _block(plan, dimension, "mlp", whole, whole)
    experts = shape.experts
    if experts is None:
        return
    if experts.shared_ffn:
        yield from _block(plan, dimension, "experts", whole, whole)
    if not plan.sequence_parallel:
        # Each rank has routed its part of the tokens; the others need the result, and its gradient.
        yield dimension.of_segment("tokens of experts", "all-gather", whole, "experts", "forward")
        yield dimension.of_segment("gradients of tokens", "all-gather", whole, "experts", "backward")
        if repeats(plan, "experts"):
            yield dimension.of_segment("tokens again", "all-gather", whole, "experts", "backward", again=True)


def _latent_width(shape: Transformer) -> float:
    mla = shape.mla
    assert mla is not None
    return (shape.hidden if mla.q_rank is None else mla.q_rank) + mla.kv_rank + mla.rope_dim


def _block(
    plan: Plan, dimension: Dimension, segment: str, whole: float, entering: float
) -> Iterator[Message]:
    """The messages of products by columns and then by rows."""
    behind: Behind | None = "segment" if plan.overlap.tensor else None
    inputs, weights = _beside_gradients(plan)
    again = repeats(plan, segment if segment != "attention" else LAYER)
    if not plan.sequence_parallel:
        yield dimension.of_segment("activations", "all-reduce", whole, segment, "forward", 1, behind)
        if again:
            what = "activations again"
            yield dimension.of_segment(what, "all-reduce", whole, segment, "backward", 1, behind, again=True)
        yield dimension.of_segment("gradients", "all-reduce", entering, segment, "backward", 1, weights)
        return
    yield dimension.of_segment("inputs", "all-gather", entering, segment, "forward", 1, behind)
    yield dimension.of_segment("outputs", "reduce-scatter", whole, segment, "forward", 1, behind)
    if again or (segment == "attention" and repeats(plan, "mla_up")):
        yield dimension.of_segment(
            "inputs again", "all-gather", entering, segment, "backward", 1, behind, again=True
        )
    if again:
        what = "outputs again"
        yield dimension.of_segment(what, "reduce-scatter", whole, segment, "backward", 1, behind, again=True)
    yield dimension.of_segment("gradients of outputs", "all-gather", whole, segment, "backward", 1, behind)
    yield dimension.of_segment("kept inputs", "all-gather", entering, segment, "backward", 1, inputs)
    yield dimension.of_segment(
        "gradients of inputs", "reduce-scatter", entering, segment, "backward", 1, weights
    )


def _beside_gradients(plan: Plan) -> tuple[Behind | None, Behind | None]:
    """What messages move beside that the products of weights' gradients wait for, and those of inputs' do not; and the reverse."""
    return ("input gradients", "weight gradients") if plan.overlap.backward else (None, None)


def vocabulary_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Of the embedding and the head, whose vocabulary is divided."""
    if plan.tp == 1:
        return
    dimension = Dimension("tp", plan.groups.tp, passes)
    tokens = plan.split.tokens
    whole = tokens * shape.hidden * FORMAT_BYTES[plan.formats.tensor]
    heads = 1 + shape.mtp_layers
    inputs, weights = _beside_gradients(plan)
    if plan.sequence_parallel:
        yield dimension.of_segment(
            "embedded tokens", "reduce-scatter", whole, "embedding", "forward", stages="first"
        )
        yield dimension.of_segment("gradients", "all-gather", whole, "embedding", "backward", stages="first")
        yield dimension.of_segment("inputs", "all-gather", whole, "head", "forward", heads, stages="last")
        yield dimension.of_segment(
            "kept inputs", "all-gather", whole, "head", "backward", heads, inputs, "last"
        )
        yield dimension.of_segment(
            "gradients", "reduce-scatter", whole, "head", "backward", heads, weights, "last"
        )
    else:
        yield dimension.of_segment(
            "embedded tokens", "all-reduce", whole, "embedding", "forward", stages="first"
        )
        yield dimension.of_segment(
            "gradients", "all-reduce", whole, "head", "backward", heads, weights, "last"
        )
    yield dimension.of_segment(
        "terms of the loss",
        "all-reduce",
        _FP32 * tokens,
        "head",
        "forward",
        heads * _LOSS_REDUCTIONS,
        stages="last",
    )


def context_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Keys and values of the other pieces of a sequence."""
    if plan.cp == 1:
        return
    dimension = Dimension("cp", plan.groups.cp, passes)
    width = FORMAT_BYTES[plan.formats.context]
    if shape.mla is None:
        numbers = max(1.0, shape.kv_heads / plan.tp) * (shape.key_dim + shape.value_dim)
    else:
        numbers = float(shape.mla.kv_rank + shape.mla.rope_dim)
    one = plan.split.tokens * numbers * width
    if plan.context == "ring":
        behind: Behind | None = "attention" if plan.overlap.context else None
        each, collective, size, back = plan.cp - 1, "send-recv", one, "send-recv"
    else:
        behind, each, collective, size, back = None, 1, "all-gather", one * plan.cp, "reduce-scatter"
    yield dimension.of_segment("keys and values", collective, size, "attention", "forward", each, behind)
    if repeats(plan, "attention"):
        what = "keys and values again"
        yield dimension.of_segment(what, collective, size, "attention", "backward", each, behind, again=True)
    yield dimension.of_segment(
        "kept keys and values", collective, size, "attention", "backward", each, behind
    )
    yield dimension.of_segment(
        "gradients of keys and values", back, size, "attention", "backward", each, behind
    )


def pipeline_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Activations to the next stage, and their gradients back."""
    if plan.pp == 1:
        return
    whole = plan.split.tokens * shape.hidden * FORMAT_BYTES[plan.formats.pipeline]
    behind: Behind | None = "micro-batch" if plan.overlap.pipeline else None
    for what, where in _BOTH_WAYS:
        size, group, count = whole / plan.tp, plan.groups.pp, passes.sent
        yield Message("pp", what, "send-recv", size, group, 1, count, where, None, "chunk", behind)
        if plan.tp > 1 and not plan.sequence_parallel:
            what, group = f"{what} of stages", plan.groups.tp
            yield Message("tp", what, "all-gather", whole, group, 1, count, where, None, "chunk", behind)
