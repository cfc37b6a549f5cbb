r"""Sampled pipelines: every operation of every stage and replica with what disturbs it.

An operation (kind k, part c of stage s, micro-batch i, replica r, sample n) takes

    M·u·(A + T·(D − 1) + E·P·L) + (waiting) + (waiting for experts)·P·L + host + shared pauses,

with A, E and T the seconds of its plain and its routed operations and of attention inside documents; M the slowness of
the slowest rank in lockstep (`slowness.py`); u what the units that the group lies in have in common in this step; D the
micro-batch's documents (`documents.py`, one for all stages); P and L the persistent and the transient load of the
busiest experts (`routing.py`; forward and backward of a micro-batch have the same). Waiting is stretched by the states
of the links that it crosses.

All of it is found by counters (`mc.pipeline.draws`): a draw depends on the seed, on the numbers of its realisation,
sample, replica and operation, and on nothing else.
"""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from mc.delays import AbstractDelay, Constant
from mc.pipeline import Draws, Finish, Rows, Timetable, Transfer, completion, draws_of
from mc.random import key_words, levels_from_words, stream, threefry2x32
from mc.training.slowness import RankNoise, SlownessCurve, SlownessTable, evaluate_curve

Sampling = Literal["exact", "direct"]
_LOAD, _DOCUMENTS, _RANKS = 1, 2, 16
# Three sources per rank: spread, jitter and pauses.
_PER_RANK = 3


class Work(eqx.Module):
    """Seconds of one operation by kind, stage and chunk, in the order of `mc.pipeline.Kind`.

    Attributes:
        plain: computes whatever the experts get.
        routed: computes with the tokens of its experts, at their mean load.
        attention: the part of `plain` that documents make less.
        waiting: for messages, whatever the experts get.
        routing: for messages to and from experts, at their mean load.
        host: beyond that.
        crossing: per tier with link states, the part of `waiting` and of `routing` whose bytes cross it, [tiers, 2, ...].
        exchanges: per tier with link states, how many messages cross it one after the other.
        group: class of the operation in the table of slowness.
        layers: class of the operation in the tables of load.
    """

    plain: Float[Array, "kinds stages chunks"]
    routed: Float[Array, "kinds stages chunks"]
    attention: Float[Array, "kinds stages chunks"]
    waiting: Float[Array, "kinds stages chunks"]
    routing: Float[Array, "kinds stages chunks"]
    host: Float[Array, "kinds stages chunks"]
    crossing: Float[Array, "tiers 2 kinds stages chunks"]
    exchanges: Float[Array, "tiers kinds stages chunks"]
    group: Int[Array, "kinds stages chunks"]
    layers: Int[Array, "stages chunks"]

    @property
    def total(self) -> Float[Array, "kinds stages chunks"]:
        """Undisturbed."""
        return self.plain + self.routed + self.waiting + self.routing + self.host


class UnitNoise(eqx.Module):
    """What all ranks of a unit have in common in a step.

    Attributes:
        name: of its stream.
        units: which units each group lies in, [stages, replicas, most].
        count: of units.
        spread: factor on operations; None for 1.
        jitter: seconds, once in a step; None for none.
        pause: likewise, with a probability.
        pause_probability: of a pause in a step.
    """

    name: str = eqx.field(static=True)
    units: Int[Array, "stages replicas most"]
    count: int = eqx.field(static=True)
    spread: AbstractDelay | None = None
    jitter: AbstractDelay | None = None
    pause: AbstractDelay | None = None
    pause_probability: Float[Array, ""] | float = 0.0


class Noise(eqx.Module):
    """All that disturbs operations.

    Attributes:
        rank: of each rank, for operations of each class.
        table: of the slowest rank; None where nothing of a rank is random.
        curve: that stands in for it; None where it does not.
        seconds: that operations of each class compute.
        units: shared.
        load: transient load by class; empty without experts.
        documents: attention work of a micro-batch; None for full-length ones.
    """

    rank: RankNoise
    table: SlownessTable | None
    seconds: Float[Array, " classes"]
    curve: SlownessCurve | None = None
    units: tuple[UnitNoise, ...] = ()
    load: tuple[AbstractDelay, ...] = ()
    documents: AbstractDelay | None = None


class Realisation(eqx.Module):
    """What stays during the steps of one realisation, and the link states of the steps that are drawn.

    Attributes:
        profile: which combination of persistent factors each group has, [stages, replicas]; for `exact`.
        factor: the persistent factor of each rank, [stages, replicas, ranks]; for `direct`.
        load: persistent load of each part.
        stretch: per tier with link states, factor on transfers, [tiers, stages, replicas, samples].
        delay: likewise, seconds per message.
    """

    profile: Int[Array, "stages replicas"]
    factor: Float[Array, "stages replicas ranks"]
    load: Float[Array, "stages chunks"]
    stretch: Float[Array, "tiers stages replicas samples"]
    delay: Float[Array, "tiers stages replicas samples"]


def pipelines(
    timetable: Timetable,
    work: Work,
    noise: Noise,
    transfer: Transfer | None,
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
        transfer: between stages; None where there is one.
        realisation: of the cluster, with link states of these samples.
        key: of the realisation.
        sample: numbers of the samples.
        method: `exact` draws a group's slowest rank, `direct` every rank.

    Returns:
        Finish with batch axes [samples, replicas] merged, samples first.
    """
    replicas, samples = realisation.profile.shape[1], sample.size
    batch = samples * replicas
    columns = jnp.repeat(sample, replicas), jnp.tile(jnp.arange(replicas, dtype=jnp.uint32), samples)
    draws = draws_of(stream(key, "operations"), *columns)
    shared = [_of_units(each, stream(key, each.name), sample, timetable.operations) for each in noise.units]
    slowest = _slowest(work, noise, realisation, draws, samples, method)

    def duration(rows: Rows) -> Float[Array, "stages batch"]:
        at = _places(timetable, rows)
        part = _places_of_part(timetable, rows)
        plain = _column(work.plain, at)
        load: Any = 1.0
        if noise.load:
            load = _load(work, noise, realisation, timetable, draws, rows, part)
        if noise.documents is not None:
            words = _words(draws, _DOCUMENTS, rows.micro_batch)
            work_of_documents = noise.documents.quantile(levels_from_words(*words))
            plain = plain + _column(work.attention, at) * (work_of_documents - 1)
        waiting, routing = _column(work.waiting, at), _column(work.routing, at)
        for tier in range(realisation.stretch.shape[0]):
            stretch, delay = (_spread_out(each[tier]) for each in (realisation.stretch, realisation.delay))
            waiting = waiting + (stretch - 1) * _column(work.crossing[tier, 0], at)
            waiting = waiting + delay * _column(work.exchanges[tier], at)
            routing = routing + (stretch - 1) * _column(work.crossing[tier, 1], at)
        computing = plain + _column(work.routed, at) * load
        if slowest is not None:
            computing = computing * slowest(rows, at)
        for each in shared:
            computing = each(rows, computing)
        return jnp.broadcast_to(
            computing + waiting + routing * load + _column(work.host, at), (timetable.stages, batch)
        )

    return completion(timetable, duration, batch, transfer=transfer)


def _slowest(
    work: Work,
    noise: Noise,
    realisation: Realisation,
    draws: Draws,
    samples: int,
    method: Sampling,
) -> Callable[[Rows, Int[Array, " stages"]], Array] | None:
    if method == "direct":
        factor = jnp.tile(realisation.factor, (1, samples, 1))
        return lambda rows, at: _each_rank(work, noise, factor, draws, rows, at)
    if noise.table is None:
        return None
    table = noise.table
    profile = jnp.tile(realisation.profile, (1, samples))
    if noise.curve is not None:
        coefficients = noise.curve.of_groups(profile)
        return lambda rows, at: evaluate_curve(coefficients, draws.words(rows)[0])
    profiles = table.times.shape[1]

    def drawn(rows: Rows, at: Int[Array, " stages"]) -> Array:
        row = work.group.reshape(-1)[at][:, None] * profiles + profile
        return table.look_up(row, draws.words(rows)[0])

    return drawn


def _each_rank(
    work: Work,
    noise: Noise,
    factor: Float[Array, "stages batch ranks"],
    draws: Draws,
    rows: Rows,
    at: Int[Array, " stages"],
) -> Float[Array, "stages batch"]:
    rank, seconds = noise.rank, noise.seconds[work.group.reshape(-1)[at]][:, None]

    def one(index: Array, most: Array) -> Array:
        source = _RANKS + _PER_RANK * index.astype(jnp.uint32)

        def levels(which: int) -> Array:
            return levels_from_words(*_words(draws, source + which, rows.number))

        took = factor[..., index]
        if rank.spread is not None:
            took = took * rank.spread.quantile(levels(0))
        if rank.jitter is not None:
            took = took + rank.jitter.quantile(levels(1)) / seconds
        if rank.pause is not None:
            # One level says whether there is a pause, and then how long it is.
            log_probability = jnp.log(jnp.asarray(rank.pause_probability))
            level = levels(2)
            paused = level < log_probability
            inside = jnp.where(paused, level - log_probability, -1.0)
            took = took + jnp.where(paused, rank.pause.quantile(inside), 0.0) / seconds
        return jnp.maximum(most, took)

    return jax.lax.fori_loop(0, factor.shape[-1], one, jnp.zeros(factor.shape[:2]))


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
    levels = levels_from_words(*_words(draws, _LOAD, number))
    kind = work.layers.reshape(-1)[part]
    drawn: Array = jnp.zeros_like(levels)
    for index, law in enumerate(noise.load):
        own = 1.0 if isinstance(law, Constant) else law.quantile(levels)
        drawn = jnp.where((kind == index)[:, None], own, drawn)
    return drawn * realisation.load.reshape(-1)[part][:, None]


def _of_units(
    noise: UnitNoise, key: PRNGKeyArray, sample: UInt32[Array, " samples"], operations: int
) -> Callable[[Rows, Array], Array]:
    """What a unit's noise makes of operations."""
    words = threefry2x32(key_words(key), sample, jnp.zeros_like(sample))
    unit = jnp.arange(noise.count, dtype=jnp.uint32)[:, None]

    def drawn(source: int) -> tuple[Array, Array]:
        shape = (noise.count, sample.size)
        counter = jnp.broadcast_to(unit, shape)
        return threefry2x32(
            (words[0][None, :], words[1][None, :]), jnp.full(shape, source, jnp.uint32), counter
        )

    def of_groups(values: Array) -> Array:
        # A group in several units goes with the worst of them.
        return _spread_out(jnp.max(values[noise.units], axis=2))

    factor = seconds = None
    if noise.spread is not None:
        factor = of_groups(noise.spread.quantile(levels_from_words(*drawn(0))))
    if noise.jitter is not None:
        seconds = noise.jitter.quantile(levels_from_words(*drawn(1)))
    if noise.pause is not None:
        level = levels_from_words(*drawn(2))
        log_probability = jnp.log(jnp.asarray(noise.pause_probability))
        paused = level < log_probability
        inside = jnp.where(paused, level - log_probability, -1.0)
        pause = jnp.where(paused, noise.pause.quantile(inside), 0.0)
        seconds = pause if seconds is None else seconds + pause
    if seconds is not None:
        when = of_groups((drawn(3)[0] % jnp.uint32(operations)).astype(jnp.int32))
        seconds = of_groups(seconds)

        def with_seconds(rows: Rows, computing: Array) -> Array:
            meets = rows.position[:, None] == when
            stretched = computing if factor is None else computing * factor
            return stretched + jnp.where(meets, seconds, 0.0)

        return with_seconds
    return lambda rows, computing: computing if factor is None else computing * factor


def _words(draws: Draws, source: Any, number: Int[Array, " stages"]) -> tuple[Array, Array]:
    low, high = (word[None, :] for word in draws.words_of_trial)
    shape = (number.size, low.size)
    counter = jnp.broadcast_to(number.astype(jnp.uint32)[:, None], shape)
    return threefry2x32((low, high), jnp.full(shape, source, jnp.uint32), counter)


def _places(timetable: Timetable, rows: Rows) -> Int[Array, " stages"]:
    stage = jnp.arange(timetable.stages)
    return (rows.kind * timetable.stages + stage) * timetable.chunks + rows.chunk


def _places_of_part(timetable: Timetable, rows: Rows) -> Int[Array, " stages"]:
    return jnp.arange(timetable.stages) * timetable.chunks + rows.chunk


def _column(table: Array, at: Int[Array, " stages"]) -> Float[Array, "stages 1"]:
    return table.reshape(-1)[at][:, None]


def _spread_out(values: Float[Array, "stages replicas samples"]) -> Float[Array, "stages batch"]:
    """To the order of the batch: samples first."""
    return jnp.swapaxes(values, 1, 2).reshape(values.shape[0], -1)


def batch_of(values: Float[Array, "*rest batch"], replicas: int) -> Float[Array, "*rest samples replicas"]:
    """Samples and replicas of a batch apart."""
    return values.reshape(*values.shape[:-1], -1, replicas)


def number_of_profiles(factors: np.ndarray) -> tuple[np.ndarray, list[list[tuple[float, int]]]]:
    """Which combination of factors each group has, and the combinations.

    Args:
        factors: [..., ranks of a group].

    Returns:
        Numbers of shape [...], and per number the (factor, ranks) of its groups.
    """
    values, place = np.unique(factors, return_inverse=True)
    place = place.reshape(-1, factors.shape[-1])
    counts = np.zeros((place.shape[0], values.size), np.int64)
    np.add.at(counts, (np.arange(place.shape[0])[:, None], place), 1)
    kinds, number = np.unique(counts, axis=0, return_inverse=True)
    profiles = [
        [(float(value), int(count)) for value, count in zip(values, row, strict=True) if count]
        for row in kinds
    ]
    return number.reshape(factors.shape[:-1]), profiles
