"""Seconds of sampled steps of a transformer: pipelines of all replicas, and what happens where replicas meet.

Where mitigations let replicas exchange every H steps, a sample is a round of H steps: each replica takes all of them one after the
other, waits for nobody but at the last one, and a step is the round over H. Where an exchange may be late, what each replica takes
is drawn, and the recursion over steps (`mc.step.delayed`) is for whoever has a whole sequence.
"""

from dataclasses import replace
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mc.experiment.training_draws import Conditions, TrainingDraws
from mc.experiment.training_links import Disturbed
from mc.pipeline import Finish
from mc.training import (
    Meeting,
    Noise,
    Realisation,
    Sampling,
    Sent,
    Work,
    alone,
    batch_of,
    ending,
    late_exchange,
    pipelines,
)

_Steps = TypeVar("_Steps")


class DrawnOf(eqx.Module):
    """What steps are drawn of, and compiled for: the numbers of a step."""

    meeting: Meeting
    work: Work
    noise: Noise
    sent: Sent | None
    dropped: int = eqx.field(static=True, default=0)
    steps: int = eqx.field(static=True, default=1)


class Replicas(NamedTuple):
    """Rounds of replicas on their own.

    Attributes:
        own: seconds of each.
        exchange: that follows.
    """

    own: Float[Array, "replicas samples"]
    exchange: Float[Array, " samples"]


class _Round(NamedTuple):
    """A round of steps of each replica; batches are [samples, replicas], merged.

    Attributes:
        own: when its last step is over, without an exchange.
        worked: seconds of all its pipelines.
        finish: of the pipeline of the last step, from the start of the round.
    """

    own: Float[Array, " batch"]
    worked: Float[Array, " batch"]
    finish: Finish


def drawn_of(draws: TrainingDraws) -> DrawnOf:
    """The numbers that steps are drawn of."""
    step = draws.step
    meeting = jax.tree.map(jnp.asarray, step.quiet.breakdown.meeting)
    return DrawnOf(meeting, step.work, step.noise, step.sent, step.dropped, step.steps)


def step_times(
    timetable,
    model: DrawnOf,
    met: Conditions,
    method: Sampling,
) -> Float[Array, " samples"]:
    """Seconds of these steps; differentiable in the floats of `model`, and in what links add.

    Args:
        timetable: of the pipeline.
        model: what is drawn of.
        met: what they meet; of links those of all steps of a round, one after the other.
        method: how slowest ranks are drawn.
    """
    found = _round(timetable, model, met, method)
    last = _of_step(met.messages, met.sample.size, model.steps, model.steps - 1)
    replicas = met.kept.profile.shape[1]
    return _ended(model.meeting, timetable, found.finish, replicas, last, model.dropped) / model.steps


def replica_times(
    timetable,
    model: DrawnOf,
    met: Conditions,
    method: Sampling,
) -> Replicas:
    """What replicas take that wait for nobody, and what their exchanges take behind that; arguments as for `step_times`."""
    found = _round(timetable, model, met, method)
    replicas, meeting = met.kept.profile.shape[1], model.meeting
    last = _of_step(met.messages, met.sample.size, model.steps, model.steps - 1)
    added = jnp.zeros((1, met.sample.size)) if last is None else last.reduce
    working = jnp.max(batch_of(found.worked, replicas), axis=-1)[None, :]
    free = jnp.stack([jnp.asarray(each) for each in meeting.free])[:, None]
    exchange = jnp.max(late_exchange(meeting.reduce + added, free, working), axis=0)
    return Replicas(batch_of(found.own, replicas).T, exchange)


def _round(
    timetable,
    model: DrawnOf,
    met: Conditions,
    method: Sampling,
) -> _Round:
    kept, sample, count = met.kept, met.sample, model.steps
    replicas = kept.profile.shape[1]

    def one(begun: Array, worked: Array, index: Array | int) -> _Round:
        now = _of_step(met.links, sample.size, count, index)
        added = _of_step(met.messages, sample.size, count, index)
        realisation = Realisation(kept.profile, kept.factor, kept.load, now)
        number = (sample * count + index).astype(jnp.uint32)
        finish = pipelines(
            timetable, model.work, model.noise, model.sent, realisation, met.key, number, method=method
        )
        waited = 0.0 if added is None else jnp.repeat(added.blocking, replicas)
        own = begun + alone(model.meeting, finish.makespan, waited)
        return _Round(own, worked + finish.makespan, _later(finish, begun))

    nothing = jnp.zeros(sample.size * replicas)
    if count == 1:
        return one(nothing, nothing, 0)

    def next_one(before: _Round, index: Array) -> tuple[_Round, None]:
        return one(before.own, before.worked, index), None

    shapes = jax.eval_shape(lambda: one(nothing, nothing, 0))
    start = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), shapes)
    found, _ = jax.lax.scan(next_one, start, jnp.arange(count, dtype=jnp.uint32))
    return found


def _later(finish: Finish, begun: Array) -> Finish:
    """The times of a pipeline that begins so much later."""

    def from_start(values: Array) -> Array:
        return values + jnp.broadcast_to(begun, values.shape)

    return finish._replace(
        makespan=from_start(finish.makespan),
        end=from_start(finish.end),
        first_start=from_start(finish.first_start),
        gradient_end=from_start(finish.gradient_end),
    )


def _of_step(each: _Steps, samples: int, count: int, index: Array | int) -> _Steps:
    """What belongs to one step of each round, of leaves whose last axis has all steps."""
    if count == 1 or each is None:
        return each
    return jax.tree.map(lambda leaf: leaf.reshape(*leaf.shape[:-1], samples, count)[..., index], each)


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
