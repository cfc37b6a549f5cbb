r"""Sampled pipelines: every operation of every stage and replica with what disturbs it.

An operation (kind k, part c of stage s, micro-batch i, replica r, sample n) takes

    M·K·u·(A + T·(D − E D) + E·P·L) + (waiting) + (waiting for experts)·P·L + host + shared pauses,

with A, E and T the seconds of its plain and its routed operations and of attention inside documents; M·K the slowness of
the slowest rank in lockstep (`slowness.py`); u what the units that the group lies in have in common in this step; D the
micro-batch's documents (`documents.py`, one for all stages); P and L the persistent and the transient load of the
busiest experts (`routing.py`; forward and backward of a micro-batch have the same). Messages take longer by the states
of the links that they cross, and are late (`lateness.py`): those that the operation waits for, and those that it sends to
another stage.

All of it is found by counters (`mc.pipeline.draws`): a draw depends on the seed, on the numbers of its realisation,
sample, replica and operation, and on nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from mc.delays import Constant
from mc.pipeline import Draws, Finish, Kind, Rows, Timetable, Transfer, completion, draws_of
from mc.random import levels_from_words, stream
from mc.training.every_rank import each_rank
from mc.training.lateness import Lateness, Levels
from mc.training.slowness import evaluate_curve
from mc.training.sources import DOCUMENTS, LOAD, SENT, TIER, WAITED, Place, column, words_of
from mc.training.unit_noise import samples_first
from mc.training.work import LinksNow, Noise, Realisation, Sampling, Sent, Work

_Slowness = Callable[[Rows, Place], Array]


class Took(NamedTuple):
    """What the operations of a level take, [stages, #batch] each: they add up.

    Attributes:
        computing: with what slows it down.
        waiting: for messages, whatever the experts get.
        routing: for messages to and from experts.
        host: beyond that.
    """

    computing: Array
    waiting: Array
    routing: Array
    host: Array


class Disturbance(NamedTuple):
    """Operations and messages of a batch of pipelines, as the recursion asks for them.

    Attributes:
        took: what operations take.
        transfer: what messages between stages take; None where there is one.
        late: what each of them takes beside; None for nothing.
        batch: how many pipelines: samples by replicas, samples first.
    """

    took: Callable[[Rows], Took]
    transfer: Transfer | None
    late: Callable[[Rows], Array] | None
    batch: int


def pipelines(
    timetable: Timetable,
    work: Work,
    noise: Noise,
    sent: Sent | None,
    realisation: Realisation,
    key: PRNGKeyArray,
    sample: UInt32[Array, " samples"],
    *,
    method: Sampling = "exact",
) -> Finish:
    """Steps of all replicas' pipelines.

    Args:
        timetable: of the schedule.
        work: undisturbed.
        noise: that disturbs it.
        sent: between stages; None where there is one.
        realisation: of the cluster, with link states of these samples.
        key: of the realisation.
        sample: numbers of the samples.
        method: `exact` draws a group's slowest rank, `direct` every rank.

    Returns:
        Finish with batch axes [samples, replicas] merged, samples first.
    """
    found = disturbed(timetable, work, noise, sent, realisation, key, sample, method=method)

    def duration(rows: Rows) -> Float[Array, "stages batch"]:
        took = found.took(rows)
        return jnp.broadcast_to(
            took.computing + took.waiting + took.routing + took.host, (timetable.stages, found.batch)
        )

    return completion(timetable, duration, found.batch, transfer=found.transfer, late=found.late)


def disturbed(
    timetable: Timetable,
    work: Work,
    noise: Noise,
    sent: Sent | None,
    realisation: Realisation,
    key: PRNGKeyArray,
    sample: UInt32[Array, " samples"],
    *,
    method: Sampling = "exact",
) -> Disturbance:
    """What `pipelines` runs, with the same arguments."""
    replicas, samples = realisation.profile.shape[1], sample.size
    batch = samples * replicas
    columns = jnp.repeat(sample, replicas), jnp.tile(jnp.arange(replicas, dtype=jnp.uint32), samples)
    draws = draws_of(stream(key, "operations"), *columns)
    shared = [each.draw(stream(key, each.name), sample, timetable.operations) for each in noise.units]
    slowest = _slowest(work, noise, realisation, draws, samples, method)
    links = None if realisation.links is None else _of_batch(realisation.links)
    mix = None if work.mix is None else jnp.tile(work.mix, (1, samples))

    def took(rows: Rows) -> Took:
        at = _places(timetable, rows)
        if mix is not None:
            at = mix * work.plain[0].size + at[:, None]
        part = jnp.arange(timetable.stages) * timetable.chunks + rows.chunk
        plain = column(work.plain, at)
        load: Any = 1.0
        if noise.load:
            load = _load(work, noise, realisation, timetable, draws, rows, part)
        if noise.documents is not None:
            words = words_of(draws, DOCUMENTS, rows.micro_batch)
            work_of_documents = noise.documents.quantile(levels_from_words(*words))
            plain = plain + column(work.attention, at) * (work_of_documents - noise.mean_attention)
        waiting, routing = column(work.waiting, at), column(work.routing, at)
        if links is not None:
            for tier, late in enumerate(noise.late):
                messages = column(work.messages[tier], at)
                stretch = links.stretch[tier] - 1
                waiting = waiting + stretch * column(work.crossing[tier, 0], at)
                waiting = waiting + links.delay[tier] * messages
                routing = routing + stretch * column(work.crossing[tier, 1], at)
                if late is not None:
                    source = WAITED + TIER * tier
                    waiting = waiting + _late(
                        late, messages, links.state[tier], draws, source, rows.number, method
                    )
        computing = plain + column(work.routed, at) * load
        if slowest is not None:
            computing = computing * slowest(rows, at)
        for each in shared:
            computing = each(rows, computing)
        return Took(computing, waiting, routing * load, column(work.host, at))

    if sent is None:
        return Disturbance(took, None, None, batch)
    if links is None:
        return Disturbance(took, Transfer(sent.seconds[0], sent.seconds[1], sent.blocking), None, batch)
    # Either end may be the one whose links are slow.
    ends = LinksNow(*(jnp.maximum(each, jnp.roll(each, -1, axis=1)) for each in _fields(links)))
    late = _lateness_of_sent(timetable, sent, noise, ends, draws, method)
    return Disturbance(took, _transfer(sent, ends), late, batch)


def _slowest(
    work: Work,
    noise: Noise,
    realisation: Realisation,
    draws: Draws,
    samples: int,
    method: Sampling,
) -> _Slowness | None:
    if method == "direct":
        factor = jnp.tile(realisation.factor, (1, samples, 1))
        chip = None if noise.chip is None else jnp.tile(noise.chip, (1, samples, 1))
        return lambda rows, at: each_rank(work, noise, factor, chip, draws, rows, at)
    if noise.table is None:
        return None
    table = noise.table
    profile = jnp.tile(realisation.profile, (1, samples))
    if noise.curve is not None:
        coefficients = noise.curve.of_groups(profile)
        return lambda rows, at: evaluate_curve(coefficients, draws.words(rows)[0])
    return lambda rows, at: table.look_up(column(work.group, at), profile, draws.words(rows)[0])


def _late(
    late: Lateness,
    messages: Any,
    state: Int[Array, "stages batch"],
    draws: Draws,
    source: int,
    number: Int[Array, " stages"],
    method: Sampling,
) -> Float[Array, "stages batch"]:
    if method == "exact":
        return late.draw(messages, state, words_of(draws, source, number)[0])
    levels: Levels = lambda which: levels_from_words(*words_of(draws, source + which, number))  # noqa: E731
    return late.draw_each(messages, state, levels)


def _transfer(sent: Sent, ends: LinksNow) -> Transfer:
    def one(way: int) -> Float[Array, "stages batch"]:
        seconds: Any = sent.seconds[way]
        for tier, messages in enumerate(sent.messages):
            seconds = seconds + (ends.stretch[tier] - 1) * sent.crossing[tier, way]
            seconds = seconds + messages * ends.delay[tier]
        return seconds

    return Transfer(one(0), one(1), sent.blocking)


def _lateness_of_sent(
    timetable: Timetable, sent: Sent, noise: Noise, ends: LinksNow, draws: Draws, method: Sampling
) -> Callable[[Rows], Array] | None:
    found = [
        (tier, late, messages)
        for tier, (late, messages) in enumerate(zip(noise.late, sent.messages, strict=True))
        if late is not None and messages
    ]
    if not found:
        return None

    def late_by(rows: Rows) -> Float[Array, "stages batch"]:
        total: Any = 0.0
        ahead = (rows.kind == Kind.FORWARD)[:, None]
        for tier, late, messages in found:
            next_one, last_one = ends.state[tier], jnp.roll(ends.state[tier], 1, axis=0)
            # Where parts of a stage send in opposite directions, either side may be meant.
            both_ways = timetable.sent.shape[1] > 1
            state = jnp.maximum(next_one, last_one) if both_ways else jnp.where(ahead, next_one, last_one)
            count = jnp.full((1, 1), messages)
            total = total + _late(late, count, state, draws, SENT + TIER * tier, rows.number, method)
        return total

    return late_by


def _load(
    work: Work,
    noise: Noise,
    realisation: Realisation,
    timetable: Timetable,
    draws: Draws,
    rows: Rows,
    part: Int[Array, " stages"],
) -> Array:
    number = part * timetable.micro_batches + rows.micro_batch
    levels = levels_from_words(*words_of(draws, LOAD, number))
    kind = work.layers.reshape(-1)[part]
    drawn: Array = jnp.zeros_like(levels)
    for index, law in enumerate(noise.load):
        own = 1.0 if isinstance(law, Constant) else law.quantile(levels)
        drawn = jnp.where((kind == index)[:, None], own, drawn)
    return drawn * realisation.load.reshape(-1)[part][:, None]


def _places(timetable: Timetable, rows: Rows) -> Int[Array, " stages"]:
    stage = jnp.arange(timetable.stages)
    return (rows.kind * timetable.stages + stage) * timetable.chunks + rows.chunk


def _fields(links: LinksNow) -> tuple[Array, Array, Array]:
    return links.stretch, links.delay, links.state


def _of_batch(links: LinksNow) -> LinksNow:
    """[tiers, stages, replicas, samples] to [tiers, stages, batch]."""
    return LinksNow(*(jax.vmap(samples_first)(each) for each in _fields(links)))


def batch_of(values: Float[Array, "*rest batch"], replicas: int) -> Float[Array, "*rest samples replicas"]:
    """Samples and replicas of a batch apart."""
    return values.reshape(*values.shape[:-1], -1, replicas)
