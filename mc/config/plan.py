"""The plan file: how a model's step is spread over the ranks of a cluster.

A transformer is cut along five dimensions (names as in Megatron-LM):

- `tp`, tensor parallel: each matrix over ranks; with `sequence_parallel` the rest of a layer too;
- `cp`, context parallel: each sequence over ranks;
- `pp`, pipeline parallel: layers over stages, in the order that `schedule` says;
- `dp`, data parallel: sequences over replicas, whose state `zero` shards;
- `ep`, expert parallel: the experts of a layer over ranks. It takes its ranks from those of tp, cp and dp: one layer's
  experts are on etp x ep of them (each expert's matrices over etp), and edp = tp·cp·dp/(etp·ep) groups hold copies.

`order` says which dimension's ranks are next to each other. Ranks are numbered through it, innermost first; the ranks of
experts are numbered etp, ep, edp through those of tp, cp and dp.

Only `ranks`, `algorithm`, `objective` and `protocol` mean something for a model that is given as `compute` and `exchange`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mc.config.names import Algorithm, Format, Objective, SchemaVersion
from mc.config.protocol import AUTO, EVERY
from mc.config.quantities import PositiveRatio, PositiveSize, Probability, Ratio
from mc.config.recompute import Recompute
from mc.document import StrictModel, located

Dimension = Literal["tp", "cp", "dp", "pp"]
Schedule = Literal["gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe"]
Optimizer = Literal["adam", "momentum", "sgd"]
Count = Annotated[int, Field(ge=1)]

DIMENSIONS: tuple[Dimension, ...] = ("tp", "cp", "dp", "pp")
SPREAD = "spread"
# What is meant for models of any kind.
FOR_EVERY_MODEL = frozenset({"schema_version", "name", "ranks", "algorithm", "objective", "protocol"})


class FormatsConfig(StrictModel):
    """Number formats: of the mathematics, of what is stored, and of what each dimension sends.

    The defaults are those of mixed precision as Megatron-LM has it: bf16 but for gradients, which are accumulated and
    reduced in fp32, and the optimizer. 18 bytes per parameter in all; with `main_gradients: bf16` the 16 of the ZeRO
    paper (arXiv 1910.02054).

    Attributes:
        math: of the products with weights.
        attention: of the products of attention, which have no weights.
        weights: stored, as the mathematics reads them.
        main_gradients: stored, in which micro-batches add up.
        master_weights: the optimizer's copy; none if this is the format of `weights`.
        optimizer_states: each of the optimizer's moments.
        activations: kept for the backward pass: what products and activation functions read. If left out, what
            products read is kept as they read it, and the rest in 16 bits. What norms and attention read stays in 16 bits.
        gradients: sent, in reductions among replicas.
        parameters: sent, where sharded parameters are gathered.
        tensor: sent among tensor-parallel ranks.
        context: sent among context-parallel ranks.
        pipeline: sent to the next stage, and its gradient back.
        dispatch: tokens sent to experts.
        combine: what comes back.
    """

    math: Format = "bf16"
    attention: Format = "bf16"
    weights: Format = "bf16"
    main_gradients: Format = "fp32"
    master_weights: Format = "fp32"
    optimizer_states: Format = "fp32"
    activations: Format | None = None
    gradients: Format = Field(default_factory=lambda data: data["main_gradients"])
    parameters: Format = Field(default_factory=lambda data: data["weights"])
    tensor: Format = "bf16"
    context: Format = "bf16"
    pipeline: Format = "bf16"
    dispatch: Format = "bf16"
    combine: Format = "bf16"


class OverlapConfig(StrictModel):
    """What is sent while ranks go on computing; the rest they wait for.

    Attributes:
        gradients: reductions of a bucket during the backward pass of the layers before it.
        parameters: gathers of sharded parameters during the layers before them.
        pipeline: activations to the next stage, and their gradients.
        tensor: collectives among tensor-parallel ranks, in pieces with the products beside them.
        backward: of those, the ones that the gradients of weights, or of inputs, do not wait for, during these products.
        context: keys and values, during the attention to those that came before.
        experts: dispatch and combine, during another micro-batch.
    """

    gradients: bool = True
    parameters: bool = True
    pipeline: bool = False
    tensor: bool = False
    backward: bool = True
    context: bool = True
    experts: bool = False


class RoutingConfig(StrictModel):
    """How tokens choose experts.

    Attributes:
        skew: standard deviation of the logarithm of an expert's popularity; 0 if all are alike.
        capacity_factor: the most tokens that an expert takes, over the mean; null for no limit.
        overflow: `drop` what is beyond the capacity, or `wait` for the busiest expert.
    """

    skew: Ratio = 0.0
    capacity_factor: PositiveRatio | None = None
    overflow: Literal["drop", "wait"] = Field(
        default_factory=lambda data: "wait" if data["capacity_factor"] is None else "drop"
    )

    @model_validator(mode="after")
    def _check_overflow(self) -> "RoutingConfig":
        if self.overflow == "drop" and self.capacity_factor is None:
            text = "expected `capacity_factor` with `drop`, since nothing overflows without"
            raise located("RoutingConfig", [(("overflow",), text)])
        return self


class DocumentsConfig(StrictModel):
    """Lengths of the documents that are packed into a sequence; attention stays inside each. Lognormal.

    Attributes:
        median: tokens.
        sigma: standard deviation of the logarithm.
    """

    median: Annotated[float, Field(gt=0)]
    sigma: Annotated[float, Field(ge=0)]


class PlanConfig(StrictModel):
    """How many ranks take part, what each has of the model, and how they exchange.

    Attributes:
        ranks: `all` of the cluster, or a number.
        algorithm: a name, `hierarchical`, or `auto` for the fastest.
        objective: what `auto` goes by: the `floor` with links idle, or the `mean` or `p99` under their noise.
        protocol: a name from the links' tables, `auto` for the fastest, `none` for latency and bandwidth
            alone.
        tp: ranks that share each matrix.
        cp: ranks that share each sequence.
        pp: stages that share the layers.
        dp: replicas; what is left of `ranks` if left out.
        ep: groups of ranks that share a layer's experts.
        etp: ranks that share each matrix of an expert.
        order: of the dimensions, innermost first.
        sequence_parallel: whether tensor-parallel ranks share the sequence between the products; by default they do.
        schedule: of the pipeline; `1f1b`, or `interleaved` where there are several chunks.
        chunks: parts of the model that each stage has (v).
        layers_per_stage: how many layers each part of the pipeline has, in the order of the model, chunks x pp of them;
            `spread` for as evenly as can be, fewer at both ends.
        balance_ends: whether the first and the last stage have one layer less, for the embedding and the loss.
        micro_batch: sequences that pass through a stage at once.
        global_batch: sequences per step.
        sequence_length: tokens per sequence.
        recompute: what the backward pass computes again: `selective`, the products of attention; `full`, every layer; or a
            list of parts (`mc.config.recompute`).
        recompute_layers: of each part of the pipeline, in how many layers, the first ones; all if left out.
        zero: what replicas shard: 1 the optimizer's states, 2 gradients too, 3 parameters too.
        zero_group: how many ranks shard among themselves, the others holding copies (HSDP); dp x cp if left out.
        attention: `fused`, without its matrix in memory, or `unfused`.
        context: how context-parallel ranks exchange keys and values: in a `ring` with each half of a sequence folded
            onto the other, so that causal attention is even, or by `all-gather`.
        formats: of numbers.
        overlap: what is sent behind computing.
        bucket: bytes of gradients that are reduced at once; those of 40 million parameters if left out, or of a
            million for each replica if that is more, as in Megatron Core.
        optimizer: `adam` has two moments, `momentum` one, `sgd` none.
        dispatcher: how tokens get to experts: `all-to-all`, a copy for each choice to its rank; or `deduplicated`, one to each
            node (the cluster's innermost tier), which passes it on to its ranks at the same time. If left out, deduplicated
            where routing is limited to groups of experts.
        routing: of tokens to experts.
        documents: lengths; sequences of one document each if left out.
        memory_reserve: part of a chip's memory that the program cannot have, since the driver, the buffers of
            the collectives and fragmentation take it. Assumed; small, since a chip with "80 GB" has 80 GiB, 7 %
            more than its data sheet says.
    """

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)] | None = None
    ranks: int | Literal["all"] = "all"
    algorithm: Algorithm = "auto"
    objective: Objective = "floor"
    protocol: Annotated[str, Field(min_length=1)] = AUTO
    tp: Count = 1
    cp: Count = 1
    pp: Count = 1
    dp: Count | None = None
    ep: Count = 1
    etp: Count = 1
    order: Annotated[tuple[Dimension, ...], Field(strict=False)] = DIMENSIONS
    sequence_parallel: bool = Field(default_factory=lambda data: data["tp"] > 1)
    chunks: Count = 1
    schedule: Schedule = Field(default_factory=lambda data: "interleaved" if data["chunks"] > 1 else "1f1b")
    layers_per_stage: Literal["spread"] | tuple[int, ...] | None = None
    balance_ends: bool = False
    micro_batch: Count = 1
    global_batch: Count | None = None
    sequence_length: Count | None = None
    recompute: Recompute = "none"
    recompute_layers: Count | None = None
    zero: Annotated[int, Field(ge=0, le=3)] = 0
    zero_group: Count | None = None
    attention: Literal["fused", "unfused"] = "fused"
    context: Literal["ring", "all-gather"] = "ring"
    formats: FormatsConfig = FormatsConfig()
    overlap: OverlapConfig = OverlapConfig()
    bucket: PositiveSize | None = None
    optimizer: Optimizer = "adam"
    dispatcher: Literal["all-to-all", "deduplicated"] | None = None
    routing: RoutingConfig = RoutingConfig()
    documents: DocumentsConfig | None = None
    memory_reserve: Annotated[Probability, Field(lt=1)] = 0.02

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, value: str) -> str:
        if value == EVERY:
            raise ValueError("expected one protocol, `auto` or `none`; got `all`")
        return value

    @field_validator("ranks", mode="before")
    @classmethod
    def _check_ranks(cls, value: Any) -> Any:
        if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            return value
        shown = repr(value) if not isinstance(value, dict | list) else "a collection"
        raise ValueError(f"expected `all` or a whole number of at least 1; got {shown}")

    @field_validator("layers_per_stage", mode="before")
    @classmethod
    def _check_layers(cls, value: Any) -> Any:
        if value is None or value == SPREAD:
            return value
        if isinstance(value, list | tuple) and value:
            if all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in value):
                return tuple(value)
            raise ValueError(f"expected whole numbers of layers; got {list(value)!r}")
        raise ValueError(f"expected `{SPREAD}` or a list of numbers of layers; got {value!r}")

    @field_validator("order")
    @classmethod
    def _check_order(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(value) != sorted(DIMENSIONS):
            raise ValueError(
                f"expected each of {', '.join(DIMENSIONS)} once; got {', '.join(value) or 'none'}"
            )
        return value

    @property
    def for_transformers(self) -> tuple[str, ...]:
        """The keys that were given, and say something other than their default, that only a transformer can use."""
        fields = type(self).model_fields
        known = {"tp": self.tp, "chunks": self.chunks}
        return tuple(
            name
            for name in fields
            if name in self.model_fields_set
            and name not in FOR_EVERY_MODEL
            and getattr(self, name)
            != fields[name].get_default(call_default_factory=True, validated_data=known)
        )
