"""What a rank keeps in memory, and whether it fits.

**State**, of ψ parameters on the rank, in bytes of their formats: weights, gradients in which micro-batches add up, and
the optimizer's master copy and moments. With 2 + 2 + 12 bytes and N_d ranks that shard (S. Rajbhandari et al., arXiv
1910.02054, section 3.2):

| ZeRO | bytes |
|---|---|
| 0 | 16ψ |
| 1, the optimizer's | 4ψ + 12ψ/N_d |
| 2, gradients too | 2ψ + 14ψ/N_d |
| 3, weights too | 16ψ/N_d |

ZeRO 2 and 3 keep a bucket of gradients whole, ZeRO 3 two layers' weights: those at work and those on their way.

**Activations** of a micro-batch per layer are those of `mc.transformer`. A stage s of p holds them for so many
micro-batches that have gone forward and not yet back:

| schedule | in flight |
|---|---|
| GPipe | m |
| 1F1B | min(m, p − s) |
| interleaved | 2(p − s − 1) + (v − 1)p + 1 passes through one of v chunks, in the order in which they start |
| ZB-H1 | min(m, p): as 1F1B, and s of which weights' gradients are put off, counted whole |
| DualPipe | p − s of one part and s + 1 of the other |

(1F1B and interleaved: D. Narayanan et al., SC21, and Megatron-LM; on the first stage the latter is 1 + (p − 1)/(pv) times
all layers' activations, V. Korthikanti et al., arXiv 2205.05198. ZB-H1: P. Qi et al., arXiv 2401.10241. DualPipe:
DeepSeek-V3, arXiv 2412.19437, table 2.) While a layer is computed again, it needs all that it would keep without; the
largest such layer counts on top.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mc.config import ExperimentConfig
from mc.config.names import FORMAT_BYTES
from mc.config.recompute import RecomputePart, recompute_text
from mc.parallel.plan import DUALPIPE, Plan, PlanError, build_plan, make_plan
from mc.parallel.state import Content, contents, distinct_stages, held_parts
from mc.transformer import (
    Transformer,
    activations,
    build_transformer,
    embedding_activations,
    head_activations,
    held,
)
from mc.units import Dimension, format_quantity

_MOST_ADVICE = 6
MOMENTS = {"adam": 2, "momentum": 1, "sgd": 0}


@dataclass(frozen=True)
class Memory:
    """Bytes on a rank of the stage that needs the most.

    Attributes:
        weights: as the mathematics reads them.
        gradients: in which micro-batches add up.
        optimizer: master copy and moments.
        activations: that the backward pass waits for, the logits of the loss, and what is computed again.
        buffers: what sharded state is gathered and reduced in.
        stage: which it is.
        in_flight: passes of a micro-batch through a part whose activations it holds at most.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    buffers: float
    stage: int
    in_flight: int

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.buffers


@lru_cache(maxsize=8192)
def memory(shape: Transformer, plan: Plan) -> Memory:
    """What a rank of the stage that needs the most has in memory."""
    # Of stages with the same contents the first has the most in flight, or as much, but where it has two ends.
    stages = range(plan.pp) if plan.schedule == DUALPIPE else distinct_stages(shape, plan)
    return max((stage_memory(shape, plan, stage) for stage in stages), key=lambda found: found.total)


def stage_memory(shape: Transformer, plan: Plan, stage: int) -> Memory:
    """What a rank of one stage has in memory."""
    everything, formats = held_parts(shape, plan)[stage], plan.formats
    flying = in_flight(plan, stage)
    shards = (plan.zero_group, plan.expert_zero_group)
    dense, experts = (sum(each[kind] for each in everything) for kind in (0, 1))

    def kept(width: float, from_stage: int) -> float:
        """Bytes of a number per parameter that is sharded from a stage of ZeRO on."""
        if plan.zero < from_stage:
            return width * (dense + experts)
        return width * (dense / shards[0] + experts / shards[1])

    master = 0.0 if formats.master_weights == formats.weights else FORMAT_BYTES[formats.master_weights]
    moments = MOMENTS[plan.optimizer] * FORMAT_BYTES[formats.optimizer_states]
    return Memory(
        weights=kept(FORMAT_BYTES[formats.weights], 3),
        gradients=kept(FORMAT_BYTES[formats.main_gradients], 2),
        optimizer=kept(master + moments, 1),
        activations=_activations(shape, plan, contents(shape, plan)[stage], flying),
        buffers=_buffers(shape, plan, dense + experts),
        stage=stage,
        in_flight=sum(flying),
    )


def in_flight(plan: Plan, stage: int) -> tuple[int, ...]:
    """Micro-batches that have passed each part of a stage and not yet gone back, at most all at once."""
    stages, count = plan.pp, plan.micro_batches
    match plan.schedule:
        case "gpipe":
            return (count,)
        case "1f1b":
            return (min(count, stages - stage),)
        case "zb-h1":
            return (min(count, stages),)
        case "dualpipe":
            return (min(count // 2, stages - stage), min(count // 2, stage + 1))
    # Interleaved: as many passes as start before the first goes back, p micro-batches through each chunk in turn.
    passes = min(count * plan.chunks, 2 * (stages - stage - 1) + (plan.chunks - 1) * stages + 1)
    rounds, rest = divmod(passes, stages * plan.chunks)
    return tuple(rounds * stages + min(max(rest - chunk * stages, 0), stages) for chunk in range(plan.chunks))


def checked_plan(config: ExperimentConfig) -> Plan:
    """The plan of an experiment whose model is a transformer, if its chips have the memory.

    A chip whose memory nobody stated has enough.

    Raises:
        PlanError: the model is no transformer, or the plan does not fit.
    """
    plan = build_plan(config)
    assert config.model.transformer is not None
    sizes = {
        chip.memory_size: chip.name for _, chip, _ in config.cluster.chips(config.ranks) if chip.memory_size
    }
    if sizes:
        least = min(sizes)
        check_memory(build_transformer(config.model.transformer), plan, least, sizes[least] or "the chip")
    return plan


def check_memory(shape: Transformer, plan: Plan, size: float, chip: str = "the chip") -> Memory:
    """The memory that a plan takes, if a chip has as much.

    Args:
        shape: the model.
        plan: the plan.
        size: bytes of the chip's memory; the plan's `memory_reserve` of it is not there to use.
        chip: its name, for the message.

    Raises:
        PlanError: it does not fit; by how much, and which changes would make it fit.
    """
    found, available = memory(shape, plan), (1 - plan.memory_reserve) * size
    if found.total <= available:
        return found
    parts = {
        name: getattr(found, name) for name in ("weights", "gradients", "optimizer", "activations", "buffers")
    }
    shares = ", ".join(f"{name} {_size(each)}" for name, each in parts.items() if each)
    others = sorted(
        ((memory(shape, other).total, text) for text, other in _changes(shape, plan)),
        key=lambda each: each[0],
    )
    would = [f"{text} ({_size(total)})" for total, text in others if total <= available]
    if would:
        advice = f"any of these would fit: {', '.join(would[:_MOST_ADVICE])}"
    elif others:
        total, text = others[0]
        advice = f"no single change fits; the nearest is {text} ({_size(total)})"
    else:
        advice = "expected a smaller model or a larger memory"
    stage = f"on each rank of stage {found.stage}" if plan.pp > 1 else "on each rank"
    flying = f" of {found.in_flight} micro-batches" if found.in_flight > 1 else ""
    raise PlanError(
        f"plan: {_size(found.total)} {stage} ({shares}{flying}), and {chip} has {_size(available)} without the reserve of "
        f"{100 * plan.memory_reserve:.3g} % ({_size(size)} in all): {_size(found.total - available)} too much; {advice}"
    )


def _activations(
    shape: Transformer, plan: Plan, content: tuple[Content, ...], flying: tuple[int, ...]
) -> float:
    split = plan.split
    whole = {kind: activations(shape, kind, split) for kind in shape.kind_counts}
    kept = {kind: activations(shape, kind, split, plan.recompute) for kind in shape.kind_counts}
    total, again = 0.0, 0.0
    for part, count in zip(content, flying, strict=True):
        for kind, layers, fewer in part.layers:
            total += count * ((layers - fewer) * whole[kind] + fewer * kept[kind])
            if fewer:
                again = max(again, whole[kind] - kept[kind])
        if part.is_first:
            total += count * embedding_activations(shape, split)
        if part.is_last:
            total += count * head_activations(shape, split)
    return total + again


def _buffers(shape: Transformer, plan: Plan, numbers: float) -> float:
    if plan.zero < 2:
        return 0.0
    formats = plan.formats
    reduced = min(plan.bucket, numbers * FORMAT_BYTES[formats.gradients])
    if plan.zero == 2:
        return reduced
    largest = max(
        sum(held(shape, (layer,), first=False, last=False, tp=plan.tp, ep=plan.ep, etp=plan.etp))
        for layer in {shape.layer_kinds.index(kind) for kind in set(shape.layer_kinds)}
    )
    return reduced + 2 * largest * FORMAT_BYTES[formats.weights]


def _changes(shape: Transformer, plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Plans that differ in one thing and need less, with what it is."""
    config = plan.config
    ways: list[tuple[str, int | str | tuple[RecomputePart, ...]]] = []
    ways += [("recompute", each) for each in ("selective", _cheap_parts(shape), "full")]
    ways += [("zero", each) for each in (1, 2, 3) if each > plan.zero]
    if plan.zero and plan.zero_group < plan.cp * plan.dp:
        ways.append(("zero_group", plan.cp * plan.dp))
    for name in ("tp", "cp", "pp", "ep"):
        ways += [(name, factor * getattr(plan, name)) for factor in (2, 4)]
    if plan.micro_batch > 1:
        ways.append(("micro_batch", plan.micro_batch // 2))
    if not plan.fused_attention:
        ways.append(("attention", "fused"))
    for name, value in ways:
        if value == getattr(config, name):
            continue
        update: dict[str, object] = {"dp": None, name: value}
        if name == "recompute":
            update["recompute_layers"] = None
        if name == "tp":
            update["sequence_parallel"] = True
        if name == "pp":
            update |= {"layers_per_stage": "spread", "balance_ends": False}
        try:
            other = make_plan(config.model_copy(update=update), shape, plan.ranks, plan.node)
        except PlanError:
            continue
        if memory(shape, other).total < memory(shape, plan).total:
            yield f"{name} {recompute_text(value) if isinstance(value, tuple) else value}", other


def _cheap_parts(shape: Transformer) -> tuple[RecomputePart, ...]:
    """What takes little to compute again (DeepSeek-V3, section 3.2.3)."""
    return ("norms", "activations") if shape.mla is None else ("norms", "mla_up", "activations")


def _size(value: float) -> str:
    return format_quantity(value, Dimension.SIZE, digits=3)
