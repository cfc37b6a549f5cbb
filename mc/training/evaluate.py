"""A step without noise: how long it is, and where its time goes.

The parts add up to the step by construction. They are read off the stage that works longest (the *critical* one, whose
idle time is the bubble): its operations at the peak and what they take beyond, what it waits for, by bandwidth and by
latency; then what messages between stages add to the makespan, what is exposed of the replicas' messages, the
optimizer, and fixed costs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mc.parallel import Plan
from mc.pipeline import Finish, Transfer, levels_of, makespan_of
from mc.pipeline.durations import by_kind
from mc.training.arithmetic import Number, minimum
from mc.training.efficiency import Chip
from mc.training.prices import AbstractPrices
from mc.training.replicas import Meeting, ending, free_part, meeting
from mc.training.times import FORWARD, INPUT, PASSES, WEIGHT, PassTime, Times, times_of
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


def evaluate(
    plan: Plan,
    shape: Transformer,
    chip: Chip,
    prices: AbstractPrices,
    *,
    routed: Number = 1.0,
    attention: Number = 1.0,
) -> Breakdown:
    """The step of a plan with all chips alike and all links idle; with floats.

    Args:
        plan: the plan.
        shape: the model.
        chip: the chip.
        prices: of messages.
        routed: mean load of the busiest experts, over that of all.
        attention: mean work of attention, over that of sequences of one document.

    Raises:
        ChipError: the chip does not have a format of the plan.
    """
    times = times_of(plan, shape, chip, prices)
    levels = levels_of(plan.schedule, plan.pp, plan.micro_batches, plan.chunks)
    table = np.asarray(table_of(times, lambda each: loaded(each, routed, attention)), np.float64)
    forward, backward = (price.seconds for price in times.transfer)
    blocking = not plan.overlap.pipeline
    transfer = Transfer(forward, backward, blocking) if plan.pp > 1 else None
    finish = makespan_of(levels, table, transfer=transfer)
    without = finish if transfer is None else makespan_of(levels, table)
    shared = meeting(plan, shape, chip, times, free_part(plan, times, prices))
    over = ending(
        shared,
        makespan=float(finish.makespan),
        end=finish.end.tolist(),
        first_start=finish.first_start.tolist(),
        gradient_end=finish.gradient_end.tolist(),
        gradient_duration=finish.gradient_duration.tolist(),
    )
    critical = int(np.argmax(finish.busy))
    passes = [getattr(part, name) for part in times.parts[critical] for name in PASSES]
    each = plan.passes
    ideal = each * sum(one.ideal for one in passes)
    compute = each * sum(_compute(one, routed, attention) for one in passes)
    waiting: dict[str, Number] = {}
    for one in passes:
        for name, seconds in one.waiting.items():
            factor = routed if name in ROUTED else 1.0
            waiting[name] = waiting.get(name, 0.0) + each * factor * seconds
    latency = each * sum(one.latency for one in passes)
    between = float(finish.makespan - without.makespan)
    latency_between = between * _share(times.transfer)
    waited = sum(waiting.values())
    latency = minimum(latency, waited)
    step_messages = sum(shared.blocking.values())
    busy = float(finish.busy[critical])
    exposed = {**waiting, "pp": waiting.get("pp", 0.0) + between}
    exposed["dp"] = exposed.get("dp", 0.0) + over.exposed
    for name, seconds in shared.blocking.items():
        exposed[name] = exposed.get(name, 0.0) + seconds
    parts = {
        "ideal_compute": ideal,
        "below_peak": compute - ideal,
        "host": each * sum(one.host for one in passes) + shared.fixed,
        "bubble": float(without.makespan) - busy,
        "bandwidth": waited - latency + between - latency_between,
        "latency_floor": latency + latency_between,
        "exposed_communication": over.exposed + step_messages,
        "optimizer": shared.optimizer,
    }
    return Breakdown(
        step=over.step,
        parts=parts,
        exposed={name: seconds for name, seconds in exposed.items() if seconds},
        bubble_fraction=(float(without.makespan) - busy) / over.step,
        finish=finish,
        times=times,
        meeting=shared,
    )


# Dimensions whose messages carry tokens to experts.
ROUTED = ("ep",)


def loaded(one: PassTime, routed: Number = 1.0, attention: Number = 1.0) -> Number:
    """Seconds of a pass whose busiest experts have so many times the mean load."""
    waiting = sum(seconds * (routed if name in ROUTED else 1.0) for name, seconds in one.waiting.items())
    return _compute(one, routed, attention) + waiting + one.host


def _compute(one: PassTime, routed: Number, attention: Number) -> Number:
    return one.compute + (routed - 1.0) * one.routed + (attention - 1.0) * one.attention


def table_of(times: Times, value: Any) -> Any:
    """A number of each pass, by kind, stage and chunk as `mc.pipeline.by_kind` has it."""
    columns = [
        [[value(getattr(part, name)) for part in stage] for stage in times.parts]
        for name in (FORWARD, INPUT, WEIGHT)
    ]
    return by_kind(len(times.parts), len(times.parts[0]), *columns)


def _share(transfer: tuple[Any, Any]) -> float:
    seconds = sum(price.seconds for price in transfer)
    return float(sum(price.latency for price in transfer) / seconds) if seconds else 0.0
