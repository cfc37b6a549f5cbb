"""Every message of a step, one entry for each kind: what, among whom, how large, how often.

With b sequences of s tokens in a micro-batch, T = bs/c of them on a rank, hidden width h, t tensor parallel ranks, m
micro-batches; sizes are those of nccl-tests (the whole buffer), times the bytes of their format:

- **tp** (M. Shoeybi et al., arXiv 1909.08053): an all-reduce of T·h behind attention and behind the network, and
  one more for each on the way back: four per layer and micro-batch. With sequence parallelism (V. Korthikanti et al.,
  arXiv 2205.05198) each is a reduce-scatter, and an all-gather in front of the next product; on the way back the
  input, which is kept in pieces, is gathered once more, while its gradient is computed. Gradients of inputs are
  reduced while those of weights are computed, as Megatron-LM does.
  The vocabulary is divided: one reduction behind the embedding, one in front of the head on the way back, and
  three numbers per token in fp32 for the loss.
- **cp**: keys and values of T tokens (of the heads on the rank; of latent attention its latent vector) to the next
  rank of a ring, c − 1 times (H. Liu et al., arXiv 2310.01889), on the way back with their gradients; or gathered at
  once (Llama 3, arXiv 2407.21783), and gathered again on the way back.
- **pp**: T·h to the next stage, and its gradient back. Each tensor parallel rank sends 1/t of it; without
  sequence parallelism the receivers then gather it (scatter and gather, D. Narayanan et al., SC21).
- **ep**: a copy of each token for each of its k experts and back, T/t·k·h. Deduplicated (DeepSeek-V3, arXiv 2412.19437,
  section 3.2.2; its library DeepEP; HybridEP), a token goes once to each node that has one of its experts, to the rank in the
  same place there, and from there, at the same time as others arrive, once to each rank: to so many as tokens choose
  (`mc.parallel.routing_choice`). With etp > 1 the ranks that share an expert first pool their tokens.
- **dp**, **edp**: gradients and parameters of what is replicated, ψ numbers. Plain: all-reduce (2ψ through each rank).
  ZeRO 1: reduce-scatter and all-gather (2ψ). ZeRO 2 keeps gradients in pieces, so each micro-batch has its own
  reduce-scatter. ZeRO 3 gathers each layer for each micro-batch, forward and backward, and reduces its gradients (3ψ
  with one micro-batch; S. Rajbhandari et al., arXiv 1910.02054). In groups (HSDP) all of that is inside of one, and
  what a rank holds is then reduced across.

What is computed again sends its forward messages again: full recomputation all of them, `mlp` and `experts` those of the
network, `attention` keys and values, `mla_up` with sequence parallelism the gather of latents.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from mc.config.names import FORMAT_BYTES
from mc.config.recompute import LAYER, parts_of
from mc.parallel.group import Group
from mc.parallel.message import Behind, Message, Stages, Where
from mc.parallel.nodes import nodes_of
from mc.parallel.plan import DUALPIPE, Plan
from mc.parallel.routing_choice import Choice, destinations
from mc.parallel.state import Content, contents, distinct_stages, held_parts
from mc.transformer import DENSE, MOE, Experts, Transformer, held, parameters

_FP32 = 4.0
# Of the loss among ranks that share the vocabulary: the largest logit, the sum of exponentials, the target's logit.
_LOSS_REDUCTIONS = 3
_BOTH_WAYS: tuple[tuple[str, Where], ...] = (("activations", "forward"), ("gradients", "backward"))


class Passes(NamedTuple):
    """How often, in a step, a micro-batch passes a segment on the busiest rank, or goes on to the next stage.

    Those with `again` are of layers in which something is computed again.
    """

    attention: int
    mlp: int
    experts: int
    attention_again: int
    mlp_again: int
    experts_again: int
    ends: int
    sent: int

    def of(self, segment: str, *, again: bool = False) -> int:
        """How often a segment is passed."""
        return getattr(self, f"{segment}_again" if again else segment, self.ends)


@lru_cache(maxsize=8192)
def messages(shape: Transformer, plan: Plan) -> tuple[Message, ...]:
    """The messages of a plan; none among groups of one rank, and none that are empty."""
    passes = _passes(shape, plan)
    found = [
        *_tensor(shape, plan, passes),
        *_vocabulary(shape, plan, passes),
        *_context(shape, plan, passes),
        *_pipeline(shape, plan, passes),
        *_experts(shape, plan, passes),
        *_replicas(shape, plan, passes),
        *_step(shape, plan),
    ]
    return tuple(each for each in found if each.group.axes and each.count and each.bytes)


def _passes(shape: Transformer, plan: Plan) -> Passes:
    everything = contents(shape, plan)
    stages = [everything[stage] for stage in distinct_stages(shape, plan)]

    def most(number: Callable[[Content], int]) -> int:
        return plan.passes * max(sum(number(each) for each in stage) for stage in stages)

    return Passes(
        attention=most(lambda each: each.dense + each.moe),
        mlp=most(lambda each: each.dense),
        experts=most(lambda each: each.moe),
        attention_again=most(lambda each: each.dense_again + each.moe_again),
        mlp_again=most(lambda each: each.dense_again),
        experts_again=most(lambda each: each.moe_again),
        ends=plan.passes,
        sent=most(lambda each: not each.is_last),
    )


def _repeats(plan: Plan, *parts: str) -> bool:
    """Whether one of some parts of a layer is computed again, or all of it."""
    return bool(parts_of(plan.recompute) & {LAYER, *parts})


class _Kind(NamedTuple):
    """What messages of one dimension have in common."""

    dimension: str
    group: Group
    passes: Passes

    def layer(
        self,
        what: str,
        collective: str,
        size: float,
        segment: str,
        where: Where,
        each: float = 1,
        behind: Behind | None = None,
        stages: Stages = "all",
        *,
        again: bool = False,
    ) -> Message:
        """A message of a segment."""
        return Message(
            self.dimension,
            what,
            collective,
            size,
            self.group,
            each,
            each * self.passes.of(segment, again=again),
            where,
            segment,
            "layer",
            behind,
            stages,
            again,
        )


def _tensor(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    if plan.tp == 1:
        return
    kind = _Kind("tp", plan.groups.tp, passes)
    width = FORMAT_BYTES[plan.formats.tensor]
    whole = plan.split.tokens * shape.hidden * width
    # Latent attention gathers what it has projected down.
    entering = whole if shape.mla is None else _latent_width(shape) * plan.split.tokens * width
    yield from _block(plan, kind, "attention", whole, entering)
    yield from _block(plan, kind, "mlp", whole, whole)
    experts = shape.experts
    if experts is None:
        return
    if experts.shared_ffn:
        yield from _block(plan, kind, "experts", whole, whole)
    if not plan.sequence_parallel:
        # Each rank has routed its part of the tokens; the others need the result, and its gradient.
        yield kind.layer("tokens of experts", "all-gather", whole, "experts", "forward")
        yield kind.layer("gradients of tokens", "all-gather", whole, "experts", "backward")
        if _repeats(plan, "experts"):
            yield kind.layer("tokens again", "all-gather", whole, "experts", "backward", again=True)


def _latent_width(shape: Transformer) -> float:
    mla = shape.mla
    assert mla is not None
    return (shape.hidden if mla.q_rank is None else mla.q_rank) + mla.kv_rank + mla.rope_dim


def _block(plan: Plan, kind: _Kind, segment: str, whole: float, entering: float) -> Iterator[Message]:
    """The messages of products by columns and then by rows."""
    behind: Behind | None = "segment" if plan.overlap.tensor else None
    inputs, weights = _beside_gradients(plan)
    again = _repeats(plan, segment if segment != "attention" else LAYER)
    if not plan.sequence_parallel:
        yield kind.layer("activations", "all-reduce", whole, segment, "forward", 1, behind)
        if again:
            what = "activations again"
            yield kind.layer(what, "all-reduce", whole, segment, "backward", 1, behind, again=True)
        yield kind.layer("gradients", "all-reduce", entering, segment, "backward", 1, weights)
        return
    yield kind.layer("inputs", "all-gather", entering, segment, "forward", 1, behind)
    yield kind.layer("outputs", "reduce-scatter", whole, segment, "forward", 1, behind)
    if again or (segment == "attention" and _repeats(plan, "mla_up")):
        yield kind.layer("inputs again", "all-gather", entering, segment, "backward", 1, behind, again=True)
    if again:
        what = "outputs again"
        yield kind.layer(what, "reduce-scatter", whole, segment, "backward", 1, behind, again=True)
    yield kind.layer("gradients of outputs", "all-gather", whole, segment, "backward", 1, behind)
    yield kind.layer("kept inputs", "all-gather", entering, segment, "backward", 1, inputs)
    yield kind.layer("gradients of inputs", "reduce-scatter", entering, segment, "backward", 1, weights)


def _beside_gradients(plan: Plan) -> tuple[Behind | None, Behind | None]:
    """What messages move beside that the products of weights' gradients wait for, and those of inputs' do not; and the reverse."""
    return ("input gradients", "weight gradients") if plan.overlap.backward else (None, None)


def _vocabulary(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    if plan.tp == 1:
        return
    kind = _Kind("tp", plan.groups.tp, passes)
    tokens = plan.split.tokens
    whole = tokens * shape.hidden * FORMAT_BYTES[plan.formats.tensor]
    heads = 1 + shape.mtp_layers
    inputs, weights = _beside_gradients(plan)
    if plan.sequence_parallel:
        yield kind.layer("embedded tokens", "reduce-scatter", whole, "embedding", "forward", stages="first")
        yield kind.layer("gradients", "all-gather", whole, "embedding", "backward", stages="first")
        yield kind.layer("inputs", "all-gather", whole, "head", "forward", heads, stages="last")
        yield kind.layer("kept inputs", "all-gather", whole, "head", "backward", heads, inputs, "last")
        yield kind.layer("gradients", "reduce-scatter", whole, "head", "backward", heads, weights, "last")
    else:
        yield kind.layer("embedded tokens", "all-reduce", whole, "embedding", "forward", stages="first")
        yield kind.layer("gradients", "all-reduce", whole, "head", "backward", heads, weights, "last")
    yield kind.layer(
        "terms of the loss",
        "all-reduce",
        _FP32 * tokens,
        "head",
        "forward",
        heads * _LOSS_REDUCTIONS,
        stages="last",
    )


def _context(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    if plan.cp == 1:
        return
    kind = _Kind("cp", plan.groups.cp, passes)
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
    yield kind.layer("keys and values", collective, size, "attention", "forward", each, behind)
    if _repeats(plan, "attention"):
        what = "keys and values again"
        yield kind.layer(what, collective, size, "attention", "backward", each, behind, again=True)
    yield kind.layer("kept keys and values", collective, size, "attention", "backward", each, behind)
    yield kind.layer("gradients of keys and values", back, size, "attention", "backward", each, behind)


def _pipeline(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
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


def _experts(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    experts, groups = shape.experts, plan.groups
    if experts is None:
        return
    behind: Behind | None = "micro-batch" if plan.overlap.experts else None
    tokens = plan.split.tokens / plan.tp * shape.hidden
    sent, returned = (FORMAT_BYTES[each] for each in (plan.formats.dispatch, plan.formats.combine))
    again = _repeats(plan, "experts")
    for route in _routes(experts, plan):
        kind = _Kind("ep", route.group, passes)
        out, back = (tokens * route.copies * width for width in (sent, returned))
        legs: list[tuple[str, float, Where]] = [
            ("dispatch", out, "forward"),
            ("combine", back, "forward"),
            ("gradients to experts", out, "backward"),
            ("gradients back", back, "backward"),
        ]
        for what, size, where in legs:
            what = f"{what}{route.name}"
            yield route.taken(kind.layer(what, "all-to-all", size, "experts", where, 1, behind))
        if again:
            for what, size, _ in legs[:2]:
                what = f"{what} again{route.name}"
                found = kind.layer(what, "all-to-all", size, "experts", "backward", 1, behind, again=True)
                yield route.taken(found)
    if plan.etp > 1:
        kind = _Kind("etp", groups.etp, passes)
        pooled = tokens * experts.top_k * plan.etp
        out, back = pooled * sent, pooled * returned
        yield kind.layer("tokens", "all-gather", out, "experts", "forward", 1, behind)
        yield kind.layer("results", "reduce-scatter", back, "experts", "forward", 1, behind)
        if again:
            what = "tokens again"
            yield kind.layer(what, "all-gather", out, "experts", "backward", 1, behind, again=True)
            what = "results again"
            yield kind.layer(what, "reduce-scatter", back, "experts", "backward", 1, behind, again=True)
        yield kind.layer("gradients of results", "all-gather", out, "experts", "backward", 1, behind)
        yield kind.layer("gradients of tokens", "reduce-scatter", back, "experts", "backward", 1, behind)


class _Route(NamedTuple):
    """A way that tokens go to experts: among whom, in how many copies each."""

    name: str
    group: Group
    copies: float
    to_nodes: bool = False
    beside: bool = False

    def taken(self, message: Message) -> Message:
        """A message that goes this way."""
        return replace(message, to_nodes=self.to_nodes, beside=self.beside)


def _routes(experts: Experts, plan: Plan) -> list[_Route]:
    if not plan.deduplicated:
        return [_Route("", plan.groups.ep, experts.top_k)]
    choice = Choice(experts.count, experts.top_k, experts.groups, experts.group_limit)
    nodes, to_ranks = nodes_of(experts, plan), destinations(choice, plan.ep)
    if nodes is None:
        return [_Route("", plan.groups.ep, to_ranks)]
    to_nodes = destinations(choice, nodes.between.size)
    return [
        _Route(" between nodes", nodes.between, to_nodes, to_nodes=True),
        _Route(" inside nodes", nodes.inside, to_ranks, beside=True),
    ]


def _replicas(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    groups = plan.groups
    everything = held_parts(shape, plan)
    stages = distinct_stages(shape, plan)
    dense = max(sum(each.dense for each in everything[stage]) for stage in stages)
    expert = max(sum(each.experts for each in everything[stage]) for stage in stages)
    if plan.zero == 3:
        yield from _layerwise(shape, plan, passes)
        return
    for dimension, numbers, group, shard, replica in (
        ("dp", dense, groups.gradient, groups.shard, groups.replica),
        ("edp", expert, groups.edp, groups.expert_shard, groups.expert_replica),
    ):
        if numbers and group.axes:
            yield from _bucketed(plan, dimension, numbers, group, shard, replica)


def _bucketed(
    plan: Plan, dimension: str, numbers: float, group: Group, shard: Group, replica: Group
) -> Iterator[Message]:
    """All gradients of a rank, in buckets; then its parameters, in as many."""
    size = numbers * FORMAT_BYTES[plan.formats.gradients]
    buckets = max(1, math.ceil(size / plan.bucket))
    one = size / buckets
    # ZeRO 2 keeps its piece of the sum only, so it reduces after each micro-batch.
    count = buckets * (plan.passes if plan.zero == 2 else 1)
    hidden: Behind | None = "layers" if plan.overlap.gradients else None
    where: Where = "backward"
    if plan.zero == 0:
        yield Message(
            dimension, "gradients", "all-reduce", one, group, count, count, where, None, "step", hidden
        )
        return
    yield Message(
        dimension, "gradients", "reduce-scatter", one, shard, count, count, where, None, "step", hidden
    )
    what, one = "shards of gradients", one / shard.size
    yield Message(dimension, what, "all-reduce", one, replica, count, count, where, None, "step", hidden)
    one = numbers * FORMAT_BYTES[plan.formats.parameters] / buckets
    hidden = "layers" if plan.overlap.parameters else None
    yield Message(
        dimension, "parameters", "all-gather", one, shard, buckets, buckets, "step", None, "step", hidden
    )


def _layerwise(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """ZeRO 3: each layer, and what is at the ends, as it is needed."""
    groups, kinds = plan.groups, shape.layer_kinds
    units: list[tuple[str, str, float, Group, Group, Stages]] = []
    for kind, segment in ((DENSE, "mlp"), (MOE, "experts")):
        if kind in kinds:
            one = held(
                shape, (kinds.index(kind),), first=False, last=False, tp=plan.tp, ep=plan.ep, etp=plan.etp
            )
            units.append(("dp", segment, one.dense, groups.shard, groups.replica, "all"))
            units.append(("edp", segment, one.experts, groups.expert_shard, groups.expert_replica, "all"))
    first = held(shape, (), first=True, last=False, tp=plan.tp).dense
    head = parameters(shape).embedding / plan.tp + parameters(shape).final_norm
    units.append(("dp", "embedding", first, groups.shard, groups.replica, "first"))
    units.append(("dp", "head", head, groups.shard, groups.replica, "last"))
    read, summed = (FORMAT_BYTES[each] for each in (plan.formats.parameters, plan.formats.gradients))
    gather: Behind | None = "layers" if plan.overlap.parameters else None
    reduce: Behind | None = "layers" if plan.overlap.gradients else None
    for dimension, segment, numbers, shard, replica, stages in units:
        inside, across = _Kind(dimension, shard, passes), _Kind(dimension, replica, passes)
        size = numbers * summed
        yield inside.layer("parameters", "all-gather", numbers * read, segment, "forward", 1, gather, stages)
        if segment != "embedding":
            yield inside.layer(
                "parameters again", "all-gather", numbers * read, segment, "backward", 1, gather, stages
            )
        yield inside.layer("gradients", "reduce-scatter", size, segment, "backward", 1, reduce, stages)
        yield across.layer(
            "shards of gradients", "all-reduce", size / shard.size, segment, "backward", 1, reduce, stages
        )


def _step(shape: Transformer, plan: Plan) -> Iterator[Message]:
    groups, count = plan.groups, parameters(shape)
    summed = FORMAT_BYTES[plan.formats.gradients]

    def one(dimension: str, what: str, size: float, group: Group, stages: Stages = "all") -> Message:
        return Message(dimension, what, "all-reduce", size, group, 1, 1, "step", None, "step", None, stages)

    everything = contents(shape, plan)
    if plan.tp > 1 and plan.sequence_parallel:
        # Norms and routers see the tokens of one rank only.
        layers = max(
            sum((each.dense + each.moe) * count.norms + each.moe * count.router for each in everything[stage])
            for stage in distinct_stages(shape, plan)
        )
        yield one("tp", "gradients of norms", layers * summed, groups.tp)
    if plan.pp > 1 and plan.schedule == DUALPIPE:
        # Each layer is on two stages; the furthest two are the first and the last.
        parts = held_parts(shape, plan)
        size = max(sum(each.dense for each in parts[stage]) for stage in distinct_stages(shape, plan))
        expert = max(sum(each.experts for each in parts[stage]) for stage in distinct_stages(shape, plan))
        shards = (plan.zero_group, plan.expert_zero_group) if plan.zero else (1, 1)
        yield one(
            "pp", "gradients of the other copy", (size / shards[0] + expert / shards[1]) * summed, groups.ends
        )
    elif plan.pp > 1 and shape.tied_embeddings:
        size = count.embedding / plan.tp * summed
        yield one("pp", "gradients of the embedding", size, groups.ends, "ends")
    yield one("dp", "norm of gradients", _FP32, groups.world if plan.zero else groups.model)
