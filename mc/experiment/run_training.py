"""Sampling the steps of a transformer, and what they come to."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.estimate import Estimate
from mc.experiment.build_training import QuietStep, TrainingStep
from mc.experiment.devices import on_all_devices
from mc.experiment.training_draws import TrainingDraws, draws_of_training
from mc.experiment.training_links import Disturbed
from mc.experiment.training_steps import DrawnOf, Replicas, drawn_of, replica_times, step_times
from mc.goodput import build_failures, goodput
from mc.parallel import Plan, memory, recomputed_share
from mc.results import GoodputSummary, TrainingSummary
from mc.step import late_exchanges
from mc.training import LinksNow, Realisation, Sampling
from mc.transformer import Flops, Transformer, build_transformer, flops, parameters

# Of the waterfall, after those of a step without noise.
NOISE_PARTS = ("straggler_wait", "routing_skew", "congestion")

Advance = Callable[[int], None]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """Steps of all realisations.

    Attributes:
        step: what was drawn of.
        parts: name to seconds, scalars and arrays of shape (realisations, steps), which add up to a step.
        sampling_s: how long drawing took.
    """

    step: TrainingStep
    parts: dict[str, Floats]
    sampling_s: float


def draw_training(config: ExperimentConfig, key: PRNGKeyArray, advance: Advance) -> Drawn:
    """Samples the steps of an experiment whose model is a transformer.

    Raises:
        InputError: the experiment cannot be built, or asks for a method that it does not have.
    """
    return draw_all(draws_of_training(config, key), config.run.samples, advance)


def draw_all(draws: TrainingDraws, samples: int, advance: Advance) -> Drawn:
    """All steps, and where their time goes."""
    step = draws.step
    breakdown = step.quiet.breakdown
    begun = time.perf_counter()
    if not step.is_random and not step.stays:
        # Nothing differs from one step to the next.
        times = np.full((3, draws.realisations, draws.per_realisation), breakdown.step)
        advance(samples)
    else:
        times = _draw(draws, samples, advance)
    sampling_s = time.perf_counter() - begun
    ranks, loads, links = times
    if loads.mean() < ranks.mean():
        # Work that varies cannot be quicker in the mean than its mean work is; in a small sample it may be.
        ranks = loads
    parts = {name: np.asarray(float(seconds)) for name, seconds in breakdown.parts.items()}
    waits = (ranks - breakdown.step, loads - ranks, links - loads)
    parts |= dict(zip(NOISE_PARTS, waits, strict=True))
    return Drawn(step, parts, sampling_s)


def _draw(draws: TrainingDraws, samples: int, advance: Advance) -> Floats:
    """Steps with the noise of ranks, with that and loads, and with all; [3, realisations, steps]."""
    step, call, rounds = draws.step, draws.call, draws.rounds
    model, draw = drawn_of(draws), eqx.filter_jit(_steps)
    found = np.empty((3, draws.realisations, draws.per_realisation))
    total = draws.realisations * rounds
    for realisation in range(draws.realisations):
        drawn = []
        for index in range(draws.calls):
            met = draws.met(realisation, index)
            drawn.append(
                draw(
                    step.timetable,
                    model,
                    met.kept,
                    met.links,
                    met.messages,
                    met.key,
                    met.sample,
                    draws.piece,
                    draws.method,
                    late=bool(step.staleness),
                )
            )
            done = realisation * rounds + min((index + 1) * call, rounds)
            before = realisation * rounds + min(index * call, rounds)
            advance(samples * done // total - samples * before // total)
        whole = jax.tree.map(lambda *parts: np.concatenate(parts, axis=-1)[..., :rounds], *drawn)
        found[:, realisation] = _sequence(whole, step) if isinstance(whole, Replicas) else whole
    return found


def _sequence(whole: Replicas, step: TrainingStep) -> Floats:
    """The steps of a realisation whose exchanges may be late."""
    own = jnp.moveaxis(jnp.asarray(whole.own), -1, 0)
    took = late_exchanges(
        lambda index: own[index], jnp.asarray(whole.exchange), step.staleness, own.shape[-1]
    )
    return np.asarray(took, np.float64) / step.steps


def _steps(
    timetable,
    model: DrawnOf,
    kept: Realisation,
    links: LinksNow | None,
    disturbed: Disturbed | None,
    key: PRNGKeyArray,
    sample: Array,
    piece: int,
    method: Sampling,
    *,
    late: bool,
) -> Float[Array, "3 samples"] | Replicas:
    pieces = sample.size // piece
    times = replica_times if late else step_times

    def cut(values: Array) -> Array:
        return jnp.moveaxis(values.reshape(*values.shape[:-1], pieces, -1), -2, 0)

    def one(own: tuple[Array, LinksNow | None, Disturbed | None]) -> Any:
        numbers, now, added = own
        without = eqx.tree_at(
            lambda each: (each.noise.load, each.noise.documents),
            model,
            ((), None),
            is_leaf=lambda leaf: leaf is None,
        )
        even = Realisation(kept.profile, kept.factor, jnp.ones_like(kept.load))
        ranks = times(timetable, without, even, None, None, key, numbers, method)
        has_loads = bool(model.noise.load) or model.noise.documents is not None
        loads = ranks
        if has_loads:
            loads = times(timetable, model, kept, None, None, key, numbers, method)
        everything = loads
        if now is not None:
            everything = times(timetable, model, kept, now, added, key, numbers, method)
        return jax.tree.map(lambda *variants: jnp.stack(variants), ranks, loads, everything)

    whole = (cut(sample), *jax.tree.map(cut, (links, disturbed)))
    found = on_all_devices(lambda own: jax.lax.map(one, own), whole)

    def joined(leaf: Array) -> Array:
        """[pieces, ..., piece] to [..., samples]."""
        return jnp.moveaxis(leaf, 0, -2).reshape(*leaf.shape[1:-1], -1)

    return jax.tree.map(joined, found)


def summary(config: ExperimentConfig, drawn: Drawn, mean: Estimate) -> TrainingSummary:
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
        tokens_per_s=_rate(useful * tokens, mean),
        mfu=_rate(useful * work.model / (working * peak), mean),
        hfu=_rate(work.hardware / peak, mean),
        tflops_per_chip=_rate(useful * work.model / (working * plan.ranks) / 1e12, mean),
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


def _rate(amount: float, seconds: Estimate) -> Estimate:
    """So much per step, as a rate: a longer step is a lower rate."""
    low, high = (amount / bound if bound > 0 else 0.0 for bound in (seconds.high, seconds.low))
    return Estimate(amount / seconds.value, low, high)


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
