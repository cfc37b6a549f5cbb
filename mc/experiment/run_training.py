"""Sampling the steps of a transformer, and what they come to."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

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
from mc.goodput import build_failures, goodput
from mc.parallel import Plan, memory, recomputed_share
from mc.pipeline import Finish
from mc.results import GoodputSummary, TrainingSummary
from mc.training import (
    LinksNow,
    Meeting,
    Noise,
    Realisation,
    Sampling,
    Sent,
    Work,
    batch_of,
    ending,
    pipelines,
)
from mc.transformer import flops, parameters

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
    if not step.is_random and not step.remembers:
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


class DrawnOf(eqx.Module):
    """What steps are drawn of, and compiled for: the numbers of a step."""

    meeting: Meeting
    work: Work
    noise: Noise
    sent: Sent | None
    dropped: int = eqx.field(static=True, default=0)


def drawn_of(draws: TrainingDraws) -> DrawnOf:
    """The numbers that steps are drawn of."""
    step = draws.step
    meeting = jax.tree.map(jnp.asarray, step.quiet.breakdown.meeting)
    return DrawnOf(meeting, step.work, step.noise, step.sent, step.dropped)


def _draw(draws: TrainingDraws, samples: int, advance: Advance) -> Floats:
    """Steps with the noise of ranks, with that and loads, and with all; [3, realisations, steps]."""
    step, call, per_realisation = draws.step, draws.call, draws.per_realisation
    model, draw = drawn_of(draws), eqx.filter_jit(_steps)
    drawn = np.empty((3, draws.realisations, draws.calls * call))
    for realisation in range(draws.realisations):
        for index in range(draws.calls):
            met = draws.met(realisation, index)
            found = draw(
                step.timetable,
                model,
                met.kept,
                met.links,
                met.messages,
                met.key,
                met.sample,
                draws.piece,
                draws.method,
            )
            drawn[:, realisation, index * call : (index + 1) * call] = np.asarray(found, np.float64)
            done = realisation * per_realisation + min((index + 1) * call, per_realisation)
            before = realisation * per_realisation + min(index * call, per_realisation)
            total = draws.realisations * per_realisation
            advance(samples * done // total - samples * before // total)
    return drawn[:, :, :per_realisation]


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
) -> Float[Array, "3 samples"]:
    pieces = sample.size // piece

    def cut(values: Array) -> Array:
        return jnp.moveaxis(values.reshape(*values.shape[:-1], pieces, piece), -2, 0)

    def one(own: tuple[Array, LinksNow | None, Disturbed | None]) -> Float[Array, "3 piece"]:
        numbers, now, late = own
        without = eqx.tree_at(
            lambda each: (each.noise.load, each.noise.documents),
            model,
            ((), None),
            is_leaf=lambda leaf: leaf is None,
        )
        even = Realisation(kept.profile, kept.factor, jnp.ones_like(kept.load))
        ranks = step_times(timetable, without, even, None, None, key, numbers, method)
        has_loads = bool(model.noise.load) or model.noise.documents is not None
        loads = ranks
        if has_loads:
            loads = step_times(timetable, model, kept, None, None, key, numbers, method)
        everything = loads
        if now is not None:
            everything = step_times(timetable, model, kept, now, late, key, numbers, method)
        return jnp.stack([ranks, loads, everything])

    whole = (cut(sample), *jax.tree.map(cut, (links, disturbed)))
    found = on_all_devices(lambda own: jax.lax.map(one, own), whole)
    return jnp.moveaxis(found, 0, 1).reshape(3, -1)


def step_times(
    timetable,
    model: DrawnOf,
    kept: Realisation,
    links: LinksNow | None,
    disturbed: Disturbed | None,
    key: PRNGKeyArray,
    sample: Array,
    method: Sampling,
) -> Float[Array, " samples"]:
    """Seconds of these steps; differentiable in the floats of `model`, and in what links add."""
    realisation = Realisation(kept.profile, kept.factor, kept.load, links)
    finish = pipelines(
        timetable, model.work, model.noise, model.sent, realisation, key, sample, method=method
    )
    return _ended(model.meeting, timetable, finish, kept.profile.shape[1], disturbed, model.dropped)


def _ended(
    meeting: Meeting,
    timetable,
    finish: Finish,
    replicas: int,
    late: Disturbed | None,
    dropped: int,
) -> Float[Array, " piece"]:
    # Those replicas are dropped whose pipelines are done last, whatever their single gradients are.
    done = batch_of(finish.makespan, replicas)
    in_time = jnp.argsort(jnp.argsort(done, axis=-1), axis=-1) < replicas - dropped

    def slowest(values: Array) -> Array:
        of_replicas = batch_of(values, replicas)
        if not dropped:
            return jnp.max(of_replicas, axis=-1)
        kept = jnp.broadcast_to(in_time, of_replicas.shape)
        return jnp.max(jnp.where(kept, of_replicas, -jnp.inf), axis=-1)

    def by_chunk(values: Array) -> list[list[Array]]:
        reduced = slowest(values)
        return [[reduced[:, chunk] for chunk in range(timetable.chunks)]]

    end = slowest(finish.end)
    added = late or Disturbed(jnp.zeros_like(end), jnp.zeros_like(end), jnp.zeros(end.shape[1:]))
    # All stages are one entry.
    together = replace(
        meeting,
        reduce=meeting.reduce + added.reduce,
        earlier=meeting.earlier + added.reduce,
        gather=meeting.gather + added.gather,
        blocking=meeting.blocking | {"links": added.blocking},
        free=(jnp.stack([jnp.asarray(each) for each in meeting.free])[:, None],),
    )
    return ending(
        together,
        makespan=slowest(finish.makespan),
        end=[end],
        first_start=by_chunk(finish.first_start),
        gradient_end=by_chunk(finish.gradient_end),
        gradient_duration=by_chunk(finish.gradient_duration),
        across=lambda values: jnp.max(values, axis=0),
    ).step


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
    again = recomputed_share(shape, plan)
    work = flops(shape, plan.sequence_length, plan.global_batch, plan.config.recompute, recomputed=again)
    chips = config.cluster.chips(plan.ranks)
    peak = sum(count * chip.peak.offered[plan.formats.math] for count, chip, _ in chips)
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
