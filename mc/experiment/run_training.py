"""Sampling the steps of a transformer, and what they come to."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from mc.config import ExperimentConfig
from mc.delays import AbstractDelay
from mc.errors import InputError
from mc.estimate import Estimate
from mc.experiment.build_training import TrainingStep, build_training
from mc.goodput import build_failures, goodput
from mc.parallel import Plan, memory
from mc.pipeline import Finish, Transfer, batch_for
from mc.random import draw_levels, stream
from mc.results import GoodputSummary, TrainingSummary
from mc.training import (
    Meeting,
    Noise,
    Realisation,
    Sampling,
    Work,
    batch_of,
    ending,
    pipelines,
)
from mc.transformer import flops, parameters

# Of the waterfall, after those of a step without noise.
NOISE_PARTS = ("straggler_wait", "routing_skew", "congestion")
# Samples per compiled call.
_CALL = 64

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
    if config.run.method == "grid":
        raise InputError(
            "run.method: expected `exact` or `direct` for a transformer, whose pipeline is sampled; got `grid`"
        )
    most = min(config.run.realisations, config.run.samples)
    step = build_training(config, key, most)
    realisations = most if step.remembers else 1
    per_realisation = -(-config.run.samples // realisations)
    method: Sampling = "direct" if step.every_rank or config.run.method == "direct" else "exact"
    breakdown = step.breakdown
    begun = time.perf_counter()
    if not step.is_random and not step.remembers:
        # Nothing differs from one step to the next.
        times = np.full((3, realisations, per_realisation), breakdown.step)
        advance(config.run.samples)
    else:
        times = _draw(config, step, key, realisations, per_realisation, method, advance)
    sampling_s = time.perf_counter() - begun
    ranks, loads, links = times
    parts = {name: np.asarray(float(seconds)) for name, seconds in breakdown.parts.items()}
    waits = (ranks - breakdown.step, loads - ranks, links - loads)
    parts |= dict(zip(NOISE_PARTS, waits, strict=True))
    return Drawn(step, parts, sampling_s)


class _Model(eqx.Module):
    """What is compiled: the numbers of a step."""

    work: Work
    noise: Noise
    transfer: Transfer | None
    jitter: tuple[AbstractDelay, ...]


def _draw(
    config: ExperimentConfig,
    step: TrainingStep,
    key: PRNGKeyArray,
    realisations: int,
    per_realisation: int,
    method: Sampling,
    advance: Advance,
) -> Floats:
    """Steps with the noise of ranks, with that and loads, and with all; [3, realisations, steps]."""
    replicas = step.lockstep.replicas
    piece = max(1, batch_for(step.timetable) // replicas)
    call = min(-(-per_realisation // piece) * piece, max(1, _CALL // piece) * piece)
    calls = -(-per_realisation // call)
    meeting = jax.tree.map(jnp.asarray, step.breakdown.meeting)
    model = _Model(step.work, step.noise, step.transfer, step.jitter)
    states = [
        each.links.chain.counts(stream(key, f"links {index}"), each.links.groups, realisations, calls * call)
        for index, each in enumerate(step.links)
    ]
    draw = eqx.filter_jit(_steps)
    drawn = np.empty((3, realisations, calls * call))
    for realisation in range(realisations):
        own = jax.random.fold_in(key, realisation)
        for index in range(calls):
            chosen = slice(index * call, (index + 1) * call)
            sample = jnp.arange(index * call, (index + 1) * call, dtype=jnp.uint32)
            stretch, delay, of_gradients = _stretched(
                step, [each[realisation, chosen] for each in states], own, sample
            )
            kept = Realisation(
                profile=jnp.asarray(step.profile[realisation], jnp.int32),
                factor=jnp.asarray(step.factor[realisation]),
                load=jnp.asarray(step.load[realisation]),
                stretch=stretch,
                delay=delay,
            )
            found = draw(step.timetable, meeting, model, kept, of_gradients, own, sample, piece, method)
            drawn[:, realisation, chosen] = np.asarray(found, np.float64)
            done = realisation * per_realisation + min((index + 1) * call, per_realisation)
            before = realisation * per_realisation + min(index * call, per_realisation)
            total, samples = realisations * per_realisation, config.run.samples
            advance(samples * done // total - samples * before // total)
    return drawn[:, :, :per_realisation]


def _steps(
    timetable,
    meeting: Meeting,
    model: _Model,
    kept: Realisation,
    of_gradients: Float[Array, " samples"],
    key: PRNGKeyArray,
    sample: Array,
    piece: int,
    method: Sampling,
) -> Float[Array, "3 samples"]:
    replicas = kept.profile.shape[1]
    pieces = sample.size // piece

    def cut(values: Array) -> Array:
        return jnp.moveaxis(values.reshape(*values.shape[:-1], pieces, piece), -2, 0)

    def one(own: tuple[Array, Array, Array, Array]) -> Float[Array, "3 piece"]:
        numbers, stretch, delay, reductions = own
        links = Realisation(kept.profile, kept.factor, kept.load, stretch, delay)
        idle = Realisation(kept.profile, kept.factor, kept.load, stretch[:0], delay[:0])
        alike = Realisation(kept.profile, kept.factor, jnp.ones_like(kept.load), stretch[:0], delay[:0])
        extra = jnp.zeros(piece)
        for place, law in enumerate(model.jitter):
            levels = _levels(stream(key, f"messages {place}"), numbers, 1)[:, 0]
            extra = extra + law.quantile(levels)

        def finished(noise: Noise, realisation: Realisation) -> Finish:
            return pipelines(
                timetable, model.work, noise, model.transfer, realisation, key, numbers, method=method
            )

        def ended(finish: Finish, factor: Array, late: Array) -> Array:
            return _ended(meeting, timetable, finish, replicas, factor, late)

        none, ones = jnp.zeros(piece), jnp.ones(piece)
        without = eqx.tree_at(
            lambda noise: (noise.load, noise.documents),
            model.noise,
            ((), None),
            is_leaf=lambda leaf: leaf is None,
        )
        ranks = finished(without, alike)
        has_loads = bool(model.noise.load) or model.noise.documents is not None
        loads = finished(model.noise, idle) if has_loads else ranks
        everything = finished(model.noise, links) if stretch.shape[0] else loads
        return jnp.stack(
            [ended(ranks, ones, none), ended(loads, ones, none), ended(everything, reductions, extra)]
        )

    found = jax.lax.map(one, (cut(sample), cut(kept.stretch), cut(kept.delay), cut(of_gradients)))
    return jnp.moveaxis(found, 0, 1).reshape(3, -1)


def _ended(
    meeting: Meeting, timetable, finish: Finish, replicas: int, stretch: Array, extra: Array
) -> Float[Array, " piece"]:
    def slowest(values: Array) -> Array:
        return jnp.max(batch_of(values, replicas), axis=-1)

    def by_chunk(values: Array) -> list[list[Array]]:
        reduced = slowest(values)
        return [[reduced[:, chunk] for chunk in range(timetable.chunks)]]

    # All stages are one entry.
    together = replace(meeting, free=(jnp.stack([jnp.asarray(each) for each in meeting.free])[:, None],))
    return ending(
        together,
        makespan=slowest(finish.makespan),
        end=[slowest(finish.end)],
        first_start=by_chunk(finish.first_start),
        gradient_end=by_chunk(finish.gradient_end),
        gradient_duration=by_chunk(finish.gradient_duration),
        stretch=stretch[None],
        extra=extra[None],
        across=lambda values: jnp.max(values, axis=0),
    ).step


@partial(jax.jit, static_argnums=2)
def _levels(key: PRNGKeyArray, numbers: Array, count: int) -> Float[Array, "samples count"]:
    """So many for each sample, whichever others are drawn with it."""
    return jax.vmap(lambda number: draw_levels(jax.random.fold_in(key, number), (count,)))(numbers)


def _stretched(
    step: TrainingStep, counts: list[Floats], key: PRNGKeyArray, sample: Array
) -> tuple[Array, Array, Array]:
    """Factors and delays of the links of each group in each sample, and the factor on reductions.

    How many links are in which state is drawn with the chain; which of them, at random.
    """
    stages, replicas = step.lockstep.stages, step.lockstep.replicas
    samples = sample.size
    stretch = np.ones((len(step.links), stages, replicas, samples))
    delay = np.zeros_like(stretch)
    of_gradients = np.ones(samples)
    for place, (each, found) in enumerate(zip(step.links, counts, strict=True)):
        links = each.links
        level = np.asarray(_levels(stream(key, f"which links {place}"), sample, links.groups))
        rank = np.argsort(np.argsort(level, axis=1), axis=1)
        state = (rank[..., None] >= np.cumsum(found, axis=1)[:, None, :-1]).sum(axis=-1)
        slowdown = np.asarray(links.states.slowdowns, np.float64)[state]
        waiting = np.asarray(links.states.delays, np.float64)[state]
        stretch[place] = np.moveaxis(slowdown[:, each.units].max(axis=-1), 0, -1)
        delay[place] = np.moveaxis(waiting[:, each.units].max(axis=-1), 0, -1)
        if place in step.gradient_links:
            of_gradients = np.maximum(of_gradients, stretch[place].max(axis=(0, 1)))
    return jnp.asarray(stretch), jnp.asarray(delay), jnp.asarray(of_gradients)


def summary(config: ExperimentConfig, drawn: Drawn, mean: Estimate) -> TrainingSummary:
    """What steps of so many seconds come to."""
    step, plan = drawn.step, drawn.step.plan
    shape, breakdown = step.shape, step.breakdown
    work = flops(shape, plan.sequence_length, plan.global_batch, plan.config.recompute)
    peak = plan.ranks * config.cluster.chip.peak.offered[plan.formats.math]
    tokens = plan.global_batch * plan.sequence_length
    held = memory(shape, plan)
    names = ("weights", "gradients", "optimizer", "activations", "buffers", "total")
    size = config.cluster.chip.memory_size
    sizes = {name: float(getattr(held, name)) for name in names}
    return TrainingSummary(
        plan=_plan_text(plan),
        parameters=float(parameters(shape).total),
        tokens=tokens,
        tokens_per_s=_rate(tokens, mean),
        mfu=_rate(work.model / peak, mean),
        hfu=_rate(work.hardware / peak, mean),
        tflops_per_chip=_rate(work.model / plan.ranks / 1e12, mean),
        bubble_fraction=float(breakdown.bubble_fraction),
        exposed_s={name: float(seconds) for name, seconds in breakdown.exposed.items()},
        memory_bytes=sizes if size is None else {**sizes, "available": float(size)},
        dropped=max((each.dropped for each in step.loads), default=0.0),
        goodput=_goodput(config, mean),
    )


def _rate(amount: float, seconds: Estimate) -> Estimate:
    """So much per step, as a rate: a longer step is a lower rate."""
    low, high = (amount / bound if bound > 0 else 0.0 for bound in (seconds.high, seconds.low))
    return Estimate(amount / seconds.value, low, high)


def _goodput(config: ExperimentConfig, mean: Estimate) -> GoodputSummary | None:
    if config.failures is None:
        return None
    found = asdict(goodput(config.ranks, build_failures(config.failures), mean.value))
    return GoodputSummary(**{name: found[name] for name in GoodputSummary.__dataclass_fields__})


def _plan_text(plan: Plan) -> str:
    sizes = [f"{name} {getattr(plan, name)}" for name in ("tp", "cp", "pp", "dp") if getattr(plan, name) > 1]
    sizes += [f"{name} {getattr(plan, name)}" for name in ("ep", "etp") if getattr(plan, name) > 1]
    chunks = f" of {plan.chunks} chunks" if plan.chunks > 1 and plan.pp > 1 else ""
    schedule = f", {plan.schedule}{chunks}" if plan.pp > 1 else ""
    zero = f", ZeRO {plan.zero}" if plan.zero else ""
    return (" x ".join(sizes) or "one rank") + schedule + zero
