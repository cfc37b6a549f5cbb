"""Messages of gradients and parameters: those of replicas, `dp` and `edp`, and what else is summed once per step."""

import math
from collections.abc import Iterator

from mc.config.names import FORMAT_BYTES
from mc.parallel.group import Group
from mc.parallel.message import Behind, Message, Stages, Where
from mc.parallel.passes import Dimension, Passes
from mc.parallel.plan import DUALPIPE, Plan
from mc.parallel.state import contents, distinct_stages, held_parts
from mc.transformer import DENSE, MOE, Transformer, held, parameters

_FP32 = 4.0


def replica_messages(shape: Transformer, plan: Plan, passes: Passes) -> Iterator[Message]:
    """Gradients and parameters of what is replicated."""
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
        inside, across = Dimension(dimension, shard, passes), Dimension(dimension, replica, passes)
        size = numbers * summed
        yield inside.of_segment(
            "parameters", "all-gather", numbers * read, segment, "forward", 1, gather, stages
        )
        if segment != "embedding":
            yield inside.of_segment(
                "parameters again", "all-gather", numbers * read, segment, "backward", 1, gather, stages
            )
        yield inside.of_segment("gradients", "reduce-scatter", size, segment, "backward", 1, reduce, stages)
        yield across.of_segment(
            "shards of gradients", "all-reduce", size / shard.size, segment, "backward", 1, reduce, stages
        )


def step_messages(shape: Transformer, plan: Plan) -> Iterator[Message]:
    """What is summed once per step besides: gradients of what has copies, and their norm."""
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
