"""A plan with every number filled in, and the groups of ranks that follow from it."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from mc.config import ExperimentConfig
from mc.config.axes import Axes, axes_of, cut, joined
from mc.config.names import FORMAT_BYTES
from mc.config.plan import DocumentsConfig, FormatsConfig, OverlapConfig, PlanConfig, RoutingConfig
from mc.config.plan_checks import plan_problems
from mc.config.plan_sizes import FOLDED, REPLICAS, layer_counts, resolved_dp
from mc.config.recompute import Recompute
from mc.errors import InputError
from mc.parallel.group import Group
from mc.transformer import Split, Transformer, build_transformer

DUALPIPE = "dualpipe"
# Megatron Core reduces gradients in buckets of so many parameters, and of more among many replicas.
BUCKET_PARAMETERS, BUCKET_PARAMETERS_PER_REPLICA = 40e6, 1e6


class PlanError(InputError):
    """A plan that cannot be, or does not fit."""


@dataclass(frozen=True)
class Part:
    """A part of the model on one rank of the pipeline.

    Attributes:
        layers: their indices.
        is_first: whether it has the embedding.
        is_last: whether it has the head, the loss, and the blocks that predict further tokens.
    """

    layers: tuple[int, ...]
    is_first: bool
    is_last: bool


class Parts(tuple[tuple[Part, ...], ...]):
    """Parts per stage and chunk, with a hash that is computed once."""

    def __hash__(self) -> int:
        """That of the tuple."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()


class Groups(NamedTuple):
    """All groups that a rank is in.

    Attributes:
        tp: that share matrices.
        cp: that share sequences.
        pp: stages; neighbours in it exchange activations.
        dp: replicas of the same part of a sequence.
        gradient: dp and cp, which add up gradients.
        shard: those of them that shard state among themselves.
        replica: those that hold the same shard.
        etp: that share each matrix of an expert.
        ep: that share a layer's experts.
        edp: that hold the same experts.
        expert_shard: those of them that shard their state.
        expert_replica: those that hold the same shard.
        model: tp and pp, which have one replica.
        ends: the first and the last stage.
        world: all.
    """

    tp: Group
    cp: Group
    pp: Group
    dp: Group
    gradient: Group
    shard: Group
    replica: Group
    etp: Group
    ep: Group
    edp: Group
    expert_shard: Group
    expert_replica: Group
    model: Group
    ends: Group
    world: Group


@dataclass(frozen=True)
class Plan:
    """How a transformer is spread over ranks.

    Attributes:
        parts: of the model, per stage and chunk. Under `dualpipe` a rank has two, those of stage i and of stage
            pp - 1 - i, so that every layer is on two ranks; else each layer is on one.
        micro_batches: that enter the pipeline in a step (m), global_batch / (dp x micro_batch).
        chunks: parts on each rank (v); 2 under `dualpipe`.
        zero_group: ranks that shard state among themselves; dp x cp where the file leaves it out.
        layers_again: of each part of the model, in how many layers something is computed again, the first ones.
        fused_attention: whether its matrix is never in memory.
        bucket: bytes of gradients that are reduced at once.
        deduplicated: whether a token is sent once to each node, however many of its experts are there.
        node: ranks of a node; None if nobody said, which leaves it to groups of experts.
        config: what all this follows from.

    The others are as in `mc.config.plan`.
    """

    ranks: int
    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    etp: int
    order: tuple[str, ...]
    sequence_parallel: bool
    schedule: str
    chunks: int
    parts: Parts
    micro_batch: int
    micro_batches: int
    global_batch: int
    sequence_length: int
    recompute: Recompute
    layers_again: int
    zero: int
    zero_group: int
    fused_attention: bool
    context: str
    formats: FormatsConfig
    overlap: OverlapConfig
    bucket: float
    optimizer: str
    deduplicated: bool
    node: int | None
    routing: RoutingConfig
    documents: DocumentsConfig | None
    memory_reserve: float
    algorithm: str
    objective: str
    protocol: str
    config: PlanConfig = field(repr=False)

    def __hash__(self) -> int:
        """Of the sizes, once: plans are keys of many caches."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        sizes = (self.ranks, self.tp, self.cp, self.pp, self.dp, self.ep, self.etp, self.order, self.chunks)
        work = (
            self.schedule,
            self.micro_batch,
            self.micro_batches,
            self.sequence_length,
            self.recompute,
            self.layers_again,
        )
        where = (self.deduplicated, self.node)
        return hash((sizes, work, where, self.zero, self.zero_group, self.sequence_parallel, self.formats))

    @property
    def edp(self) -> int:
        """How many copies of a layer's experts there are."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @property
    def layers(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Indices of the layers, per stage and chunk."""
        return tuple(tuple(part.layers for part in stage) for stage in self.parts)

    @property
    def passes(self) -> int:
        """How many micro-batches go through a part in a step: all, or half of them from either end."""
        return self.micro_batches // 2 if self.schedule == DUALPIPE else self.micro_batches

    @property
    def expert_zero_group(self) -> int:
        """How many ranks shard the state of an expert: those of a `zero_group` that hold it."""
        return min(self.edp, max(1, self.tp * self.zero_group // (self.etp * self.ep)))

    @cached_property
    def groups(self) -> Groups:
        """The groups of ranks."""
        return _groups(self)

    @cached_property
    def split(self) -> Split:
        """How a layer is cut and stored, in the terms of `mc.transformer`."""
        formats = self.formats
        # Activations are as wide as the mathematics, but not narrower than 16 bits.
        stored = max(2.0, FORMAT_BYTES[formats.math])
        return Split(
            micro_batch=self.micro_batch,
            sequence_length=self.sequence_length,
            tp=self.tp,
            cp=self.cp,
            ep=self.ep,
            etp=self.etp,
            sequence_parallel=self.sequence_parallel,
            fused_attention=self.fused_attention,
            activation_bytes=stored,
            operand_bytes=min(stored, FORMAT_BYTES[formats.math]),
            gradient_bytes=FORMAT_BYTES[formats.main_gradients],
            kept_bytes=None if formats.activations is None else FORMAT_BYTES[formats.activations],
        )


def build_plan(config: ExperimentConfig) -> Plan:
    """The plan of an experiment whose model is a transformer.

    Raises:
        PlanError: the model is none, or serves.
    """
    if config.serving is not None:
        raise PlanError("expected an experiment with a `plan`, of training; this one has `serving`")
    if config.model.transformer is None:
        raise PlanError("expected a model with a `transformer`; this one has `compute` and `exchange`")
    node = config.cluster.tiers[0].fan_out
    return make_plan(config.plan, build_transformer(config.model.transformer), config.ranks, node)


def make_plan(config: PlanConfig, shape: Transformer, ranks: int, node: int | None = None) -> Plan:
    """The plan that a configuration describes, for a shape on so many ranks.

    Args:
        config: the plan's.
        shape: of the model.
        ranks: how many take part.
        node: ranks of a node.

    Raises:
        PlanError: everything that is wrong with it.
    """
    found = list(plan_problems(config, shape, ranks, "the plan"))
    if found:
        raise PlanError("\n".join(f"{'.'.join(map(str, path))}: {text}" for path, text in found))
    assert config.global_batch is not None
    assert config.sequence_length is not None
    dp = resolved_dp(config, ranks)
    is_both_ways = config.schedule == DUALPIPE
    counts = layer_counts(config, shape.layers)
    width = FORMAT_BYTES[config.formats.gradients]
    bucket = config.bucket or width * max(BUCKET_PARAMETERS, BUCKET_PARAMETERS_PER_REPLICA * dp * config.cp)
    return Plan(
        ranks=ranks,
        tp=config.tp,
        cp=config.cp,
        pp=config.pp,
        dp=dp,
        ep=config.ep,
        etp=config.etp,
        order=config.order,
        sequence_parallel=config.sequence_parallel and config.tp > 1,
        schedule=config.schedule,
        chunks=2 if is_both_ways else config.chunks,
        parts=_parts(counts, config.pp, is_both_ways),
        micro_batch=config.micro_batch,
        micro_batches=config.global_batch // (dp * config.micro_batch),
        global_batch=config.global_batch,
        sequence_length=config.sequence_length,
        recompute=config.recompute,
        layers_again=layers_again(config, shape),
        zero=config.zero,
        zero_group=config.zero_group or dp * config.cp,
        fused_attention=config.attention == "fused",
        context=config.context,
        formats=config.formats,
        overlap=config.overlap,
        bucket=bucket,
        optimizer=config.optimizer,
        deduplicated=_is_deduplicated(config, shape),
        node=node,
        routing=config.routing,
        documents=config.documents,
        memory_reserve=config.memory_reserve,
        algorithm=config.algorithm,
        objective=config.objective,
        protocol=config.protocol,
        config=config,
    )


def layers_again(config: PlanConfig, shape: Transformer) -> int:
    """In how many layers of a part something is computed again."""
    if config.recompute == "none":
        return 0
    return config.recompute_layers or shape.layers + shape.mtp_layers


def _is_deduplicated(config: PlanConfig, shape: Transformer) -> bool:
    experts = shape.experts
    if config.dispatcher is not None or experts is None:
        return config.dispatcher == "deduplicated"
    return experts.group_limit < experts.groups


@lru_cache(maxsize=4096)
def _parts(counts: tuple[int, ...], pp: int, is_both_ways: bool) -> Parts:  # noqa: FBT001
    parts, first = [], 0
    for place, size in enumerate(counts):
        parts.append(Part(tuple(range(first, first + size)), place == 0, place == len(counts) - 1))
        first += size
    if is_both_ways:
        return Parts((part, parts[-1 - stage]) for stage, part in enumerate(parts))
    return Parts(tuple(parts[stage::pp]) for stage in range(pp))


def _groups(plan: Plan) -> Groups:
    sizes = {"tp": plan.tp, "cp": plan.cp, "dp": plan.dp, "pp": plan.pp}
    numbered = [(name, sizes[name]) for name in plan.order]
    replicas, folded = axes_of(numbered, REPLICAS), axes_of(numbered, FOLDED)
    shard, expert_shard = plan.zero_group, plan.expert_zero_group
    mine = plan.etp * plan.ep
    stages = axes_of(numbered, frozenset({"pp"}))
    ends = ((2, (plan.pp - 1) * stages[0][1]),) if stages else ()

    def alone(name: str) -> Group:
        return Group(name, axes_of(numbered, frozenset({name})))

    return Groups(
        tp=alone("tp"),
        cp=alone("cp"),
        pp=Group("pp", stages),
        dp=alone("dp"),
        gradient=Group("gradient", replicas),
        shard=_part("shard", replicas, 1, shard),
        replica=_part("replica", replicas, shard, plan.cp * plan.dp // shard),
        etp=_part("etp", folded, 1, plan.etp),
        ep=_part("ep", folded, plan.etp, plan.ep),
        edp=_part("edp", folded, mine, plan.edp),
        expert_shard=_part("expert shard", folded, mine, expert_shard),
        expert_replica=_part("expert replica", folded, mine * expert_shard, plan.edp // expert_shard),
        model=Group("model", axes_of(numbered, frozenset({"tp", "pp"}))),
        ends=Group("ends", ends),
        world=Group("world", joined([(plan.ranks, 1)])),
    )


def _part(name: str, axes: Axes, skip: int, take: int) -> Group:
    found = cut(axes, skip, take)
    if found is None:
        raise PlanError(f"{name}: expected {take} ranks from each {skip}th on to lie regularly; they do not")
    return Group(name, found)
