"""A step without noise: how long it is, and where its time goes.

The parts add up to the step by construction. They are read off the stage that works longest (the *critical* one, whose
idle time is the bubble): its operations at the peak and what they take beyond, what it waits for, by bandwidth and by
latency; then what messages between stages add to the makespan, what is exposed of the replicas' messages, the
optimizer, and fixed costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mc.parallel import Plan
from mc.pipeline import Finish, by_kind, critical, levels_of
from mc.training.arithmetic import Number, maximum, minimum
from mc.training.efficiency import Chip
from mc.training.pass_times import FORWARD, INPUT, PASSES, ROUTED, WEIGHT, PartTimes, PassTime, Times
from mc.training.prices import AbstractPrices
from mc.training.replicas import Ending, Meeting, ending, free_part, meeting
from mc.training.times import times_of
from mc.transformer import Transformer

# Of the step, in the order of the waterfall.
PARTS = (
    "ideal_compute",
    "below_peak",
    "host",
    "bubble",
    "bandwidth",
    "latency_floor",
    "exposed_communication",
    "optimizer",
)


@dataclass(frozen=True)
class Breakdown:
    """A step without noise; seconds.

    Attributes:
        step: all of it.
        parts: that add up to it, by the names of `PARTS`.
        exposed: that computing waits for messages, by dimension: `tp`, `cp`, `ep`, `etp`, `pp` and `dp`.
        bubble_fraction: part of the makespan in which the critical stage is idle.
        finish: of the pipeline.
        times: of passes.
        meeting: of replicas.
    """

    step: Number
    parts: dict[str, Number]
    exposed: dict[str, Number]
    bubble_fraction: Number
    finish: Finish
    times: Times
    meeting: Meeting


class Load(NamedTuple):
    """Means of what depends on the data.

    Attributes:
        ranks: load of the rank with the busiest experts, over that of all.
        nodes: load of the busiest node, where tokens are sent once to each.
        attention: work of attention, over that of sequences of one document.
    """

    ranks: Number = 1.0
    nodes: Number = 1.0
    attention: Number = 1.0


_EVEN = Load()


def evaluate(
    plan: Plan,
    shape: Transformer,
    chip: Chip,
    prices: AbstractPrices,
    *,
    routed: Number = 1.0,
    nodes: Number = 1.0,
    attention: Number = 1.0,
    times: Times | None = None,
) -> Breakdown:
    """The step of a plan with all chips alike and all links idle; with floats.

    With less attention the ideal part shrinks as computing does.

    Args:
        plan: the plan.
        shape: the model.
        chip: the chip.
        prices: of messages.
        routed: mean load of the rank with the busiest experts, over that of all.
        nodes: mean load of the busiest node, where tokens are sent once to each.
        attention: mean work of attention, over that of sequences of one document.
        times: of passes, if they are not those of the chip alone (`mc.training.generations`).

    Raises:
        ChipError: the chip does not have a format of the plan.
    """
    times = times_of(plan, shape, chip, prices) if times is None else times
    load = Load(routed, nodes, attention)
    finish, without = _pipelines(plan, times, load)
    shared = meeting(plan, shape, chip, times, free_part(plan, times, prices))
    over = _ending(shared, finish)
    each, busy = plan.passes, finish.busy.max(axis=0)
    critical = _of_stage(times, finish.busy.argmax(axis=0), load)
    between = finish.makespan - without.makespan
    latency_between = between * _share(times.transfer)
    waiting = {name: each * seconds for name, seconds in critical.waiting.items()}
    waited = sum(waiting.values())
    latency = minimum(each * critical.latency, waited)
    step_messages = sum(shared.blocking.values())
    exposed = {**waiting, "pp": waiting.get("pp", 0.0) + between}
    exposed["dp"] = exposed.get("dp", 0.0) + over.exposed
    for name, seconds in shared.blocking.items():
        exposed[name] = exposed.get(name, 0.0) + seconds
    parts = {
        "ideal_compute": each * critical.ideal,
        "below_peak": each * (critical.compute - critical.ideal),
        "host": each * critical.host + shared.fixed,
        "bubble": without.makespan - busy,
        "bandwidth": waited - latency + between - latency_between,
        "latency_floor": latency + latency_between,
        "exposed_communication": over.exposed + step_messages,
        "optimizer": shared.optimizer,
    }
    return Breakdown(
        step=over.step,
        parts=parts,
        exposed={name: seconds for name, seconds in exposed.items() if np.any(seconds)},
        bubble_fraction=(without.makespan - busy) / over.step,
        finish=finish,
        times=times,
        meeting=shared,
    )


def computing(found: Breakdown, passes: int, attention: Number = 1.0) -> Number:
    """Seconds of a step that a chip computes, the mean over the stages: operations, and the optimizer."""
    load, known = Load(attention=attention), {}
    for stage in found.times.parts:
        key = tuple(map(id, stage))
        if key not in known:
            known[key] = _added(stage, load).compute
    stages = [known[tuple(map(id, stage))] for stage in found.times.parts]
    return passes * sum(stages) / len(stages) + found.parts["optimizer"]


def _pipelines(plan: Plan, times: Times, load: Load) -> tuple[Finish, Finish]:
    """The pipeline with its messages, and without."""
    distinct, sorts = _sorted(times)
    passes = [loaded(getattr(part, name), load) for name in PASSES for part in distinct]
    levels = levels_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    if plan.pp == 1:
        finish = critical(levels, sorts).finish(_stacked(passes))
        return finish, finish
    late = [price.seconds for price in times.transfer]
    durations = _stacked([*passes, *late])
    finish = critical(levels, sorts, blocking=not plan.overlap.pipeline).finish(durations)
    if not durations[-2:].any():
        return finish, finish
    return finish, critical(levels, sorts).finish(durations[:-2])


def _sorted(times: Times) -> tuple[list[PartTimes], tuple[tuple[int, ...], ...]]:
    """The parts that differ, and which of them each chunk of each stage is."""
    number: dict[int, int] = {}
    distinct: list[PartTimes] = []
    rows: dict[tuple[int, ...], tuple[int, ...]] = {}
    found = []
    for stage in times.parts:
        key = tuple(map(id, stage))
        if key not in rows:
            for part in stage:
                if id(part) not in number:
                    number[id(part)] = len(distinct)
                    distinct.append(part)
            rows[key] = tuple(number[each] for each in key)
        found.append(rows[key])
    return distinct, tuple(found)


def _stacked(numbers: Sequence[Number]) -> NDArray[np.float64]:
    """[numbers], or [numbers, batch] if some are arrays."""
    if any(isinstance(each, np.ndarray) for each in numbers):
        return np.stack(np.broadcast_arrays(*numbers)).astype(np.float64, copy=False)
    return np.array(numbers, np.float64)


def _ending(shared: Meeting, finish: Finish) -> Ending:
    # All stages in one array, as one entry.
    dimensions = finish.end.ndim
    free = _stacked(shared.free)
    free = free if free.ndim == dimensions else free[:, None]

    def last(number: Number) -> Number:
        return number.max(axis=0) if np.ndim(number) == dimensions else number

    def by_chunk(parts: NDArray[np.float64]) -> list[list[NDArray[np.float64]]]:
        return [[parts[:, chunk] for chunk in range(parts.shape[1])]]

    return ending(
        replace(shared, free=(free,)),
        makespan=finish.makespan,
        end=[finish.end],
        first_start=by_chunk(finish.first_start),
        gradient_end=by_chunk(finish.gradient_end),
        gradient_duration=by_chunk(finish.gradient_duration),
        across=last,
    )


class _Stage(NamedTuple):
    """All passes of one micro-batch through a stage; seconds."""

    ideal: Number
    compute: Number
    latency: Number
    host: Number
    waiting: dict[str, Number]


def _of_stage(times: Times, which: NDArray[np.int64], load: Load) -> _Stage:
    """A stage; or where several are asked for, the numbers of each."""
    if which.ndim == 0:
        return _added(times.parts[which], load)
    # Stages of the same parts are the same.
    rows: dict[tuple[int, ...], int] = {}
    row_of = np.array([rows.setdefault(tuple(map(id, stage)), len(rows)) for stage in times.parts])
    place = row_of[which]
    first = [int(np.argmax(row_of == row)) for row in range(len(rows))]
    stages = [_added(times.parts[stage], load) for stage in first]
    if place.min() == place.max():
        return stages[place[0]]

    def chosen(numbers: Sequence[Number]) -> NDArray[np.float64]:
        *each, _ = np.broadcast_arrays(*numbers, place)
        return np.take_along_axis(np.stack(each), place[None], axis=0)[0]

    names = dict.fromkeys(name for stage in stages for name in stage.waiting)
    return _Stage(
        *(chosen([stage[field] for stage in stages]) for field in range(4)),
        waiting={name: chosen([stage.waiting.get(name, 0.0) for stage in stages]) for name in names},
    )


def _added(parts: Sequence[PartTimes], load: Load) -> _Stage:
    passes = [getattr(part, name) for part in parts for name in PASSES]
    waiting: dict[str, Number] = {}
    for one in passes:
        for name, seconds in one.waiting.items():
            waiting[name] = waiting.get(name, 0.0) + seconds
        if ROUTED in one.waiting:
            waiting[ROUTED] = waiting[ROUTED] + one.tokens(load.ranks, load.nodes) - one.tokens()
    return _Stage(
        ideal=sum(one.ideal * _less(one, load.attention) for one in passes),
        compute=sum(_compute(one, load) for one in passes),
        latency=sum(one.latency for one in passes),
        host=sum(one.host for one in passes),
        waiting=waiting,
    )


# Stands in for 0 where that divides 0.
_LEAST = 1e-300


def loaded(one: PassTime, load: Load = _EVEN) -> Number:
    """Seconds of a pass under a load."""
    waiting = sum(one.waiting.values()) + one.tokens(load.ranks, load.nodes) - one.tokens()
    return _compute(one, load) + waiting + one.host


def _compute(one: PassTime, load: Load) -> Number:
    return one.compute + (load.ranks - 1.0) * one.routed + (load.attention - 1.0) * one.attention


def _less(one: PassTime, attention: Number) -> Number:
    """What part of a pass's computing is left with so much attention."""
    return 1.0 + (attention - 1.0) * one.attention / maximum(one.compute, _LEAST)


def table_of(times: Times, value: Any) -> Any:
    """A number of each pass, by kind, stage and chunk as `mc.pipeline.by_kind` has it."""
    columns = [
        [[value(getattr(part, name)) for part in stage] for stage in times.parts]
        for name in (FORWARD, INPUT, WEIGHT)
    ]
    return by_kind(len(times.parts), len(times.parts[0]), *columns)


def _share(transfer: tuple[Any, Any]) -> Number:
    seconds = sum(price.seconds for price in transfer)
    return sum(price.latency for price in transfer) / maximum(seconds, _LEAST)
