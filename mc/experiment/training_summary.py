"""What the steps of a transformer come to: rates, MFU, memory, goodput."""

from dataclasses import asdict

from mc.config import ExperimentConfig
from mc.estimate import Estimate
from mc.experiment.quiet_step import QuietStep
from mc.experiment.run_training import Drawn
from mc.goodput import build_failures, goodput
from mc.parallel import Plan, memory, recomputed_share
from mc.results import GoodputSummary, TrainingSummary
from mc.transformer import Flops, Transformer, build_transformer, flops, parameters


def training_summary(config: ExperimentConfig, drawn: Drawn, mean: Estimate) -> TrainingSummary:
    """What steps of so many seconds come to."""
    dropped = max((each.dropped for each in drawn.step.loads), default=0.0)
    return summary_of(config, drawn.step.quiet, mean, dropped=dropped)


def summary_of(
    config: ExperimentConfig, quiet: QuietStep, mean: Estimate, *, dropped: float = 0.0
) -> TrainingSummary:
    """What a step comes to.

    Args:
        config: the experiment.
        quiet: its step without noise.
        mean: seconds of a step.
        dropped: part of the tokens' choices of experts that are not served.
    """
    plan, shape, breakdown = quiet.plan, quiet.shape, quiet.breakdown
    work, peak = _work(plan, shape), _peak(config, plan)
    chips = config.cluster.chips(plan.ranks)
    # Chips of backups work too; samples of replicas that nobody waits for are lost.
    working, useful = 1 + config.backup_ranks / plan.ranks, config.useful
    tokens = plan.global_batch * plan.sequence_length
    held = memory(shape, plan)
    names = ("weights", "gradients", "optimizer", "activations", "buffers", "total")
    size = min((chip.memory_size for _, chip, _ in chips if chip.memory_size), default=None)
    sizes = {name: float(getattr(held, name)) for name in names}
    return TrainingSummary(
        plan=_plan_text(plan),
        parameters=float(parameters(shape).total),
        tokens=tokens,
        tokens_per_s=mean.rate(useful * tokens),
        mfu=mean.rate(useful * work.model / (working * peak)),
        hfu=mean.rate(work.hardware / peak),
        tflops_per_chip=mean.rate(useful * work.model / (working * plan.ranks) / 1e12),
        bubble_fraction=float(breakdown.bubble_fraction),
        exposed_s={name: float(seconds) for name, seconds in breakdown.exposed.items()},
        memory_bytes=sizes if size is None else {**sizes, "available": float(size)},
        dropped=dropped,
        goodput=_goodput(config, mean),
    )


def step_at_full_use(config: ExperimentConfig, plan: Plan) -> float:
    """Seconds of a step whose model FLOP utilisation (MFU) is 1: divided by an MFU, those of the step that has it.

    Args:
        config: the experiment; its model is a transformer.
        plan: of it.
    """
    assert config.model.transformer is not None
    work = _work(plan, build_transformer(config.model.transformer))
    working = 1 + config.backup_ranks / plan.ranks
    return float(config.useful * work.model / (working * _peak(config, plan)))


def _work(plan: Plan, shape: Transformer) -> Flops:
    again = recomputed_share(shape, plan)
    return flops(shape, plan.sequence_length, plan.global_batch, plan.config.recompute, recomputed=again)


def _peak(config: ExperimentConfig, plan: Plan) -> float:
    """FLOP per second of all ranks, by their data sheets."""
    chips = config.cluster.chips(plan.ranks)
    return sum(count * chip.peak.offered[plan.formats.math] for count, chip, _ in chips)


def _goodput(config: ExperimentConfig, mean: Estimate) -> GoodputSummary | None:
    if config.failures is None:
        return None
    found = asdict(
        goodput(config.ranks, build_failures(config.failures, config.mitigations.spares), mean.value)
    )
    return GoodputSummary(**{name: found[name] for name in GoodputSummary.__dataclass_fields__})


def _plan_text(plan: Plan) -> str:
    sizes = [f"{name} {getattr(plan, name)}" for name in ("tp", "cp", "pp", "dp") if getattr(plan, name) > 1]
    sizes += [f"{name} {getattr(plan, name)}" for name in ("ep", "etp") if getattr(plan, name) > 1]
    chunks = f" of {plan.chunks} chunks" if plan.chunks > 1 and plan.pp > 1 else ""
    schedule = f", {plan.schedule}{chunks}" if plan.pp > 1 else ""
    zero = f", ZeRO {plan.zero}" if plan.zero else ""
    return (" x ".join(sizes) or "one rank") + schedule + zero
