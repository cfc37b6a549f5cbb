r"""Where replicas meet: gradients are reduced, the optimizer steps, parameters are gathered.

A stage reduces the gradients of a part of the model in b buckets of g seconds each, as they come out of the last
backward pass through that part, which takes d seconds and ends at E: bucket j is ready at E − d·(1 − j/b). A bucket
waits for the one before it, so with e the end of the part that was reduced before,

    e' = max(e + b·g, E − ρ·d·(1 − 1/b) + b·g, E + g),

which is the (max, +) recursion over buckets, worked out: it is linear in j between its ends. ρ is the part of the time
that the link has free while ranks compute, since what ranks wait for (tensor parallel collectives, tokens) goes first:
a link carries one byte at a time, whoever sends it. Only what is left when the last stage is done with computing counts
as exposed. All replicas must have a gradient before it is reduced: each time is that of the slowest.

Gathers of parameters are counted at the other end, which comes to the same: a part's first layer must be there when its
first forward starts, and the whole part when that is over.

Plain arithmetic on whatever the times are: floats, or arrays of samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax

from mc.config.names import FORMAT_BYTES
from mc.parallel import Plan, distinct_stages, held_parts
from mc.parallel.memory import MOMENTS
from mc.training.arithmetic import Number, largest, maximum, positive
from mc.training.efficiency import Chip
from mc.training.pass_times import PASSES, Times
from mc.training.prices import AbstractPrices
from mc.transformer import Transformer

# Dimensions whose messages are of replicas.
REPLICATED = ("dp", "edp")
GRADIENTS, PARAMETERS = "backward", "parameters"


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["reduce", "earlier", "gather", "blocking", "latency", "optimizer", "fixed", "free"],
    meta_fields=["earlier_count", "buckets", "reduce_hidden", "gather_hidden"],
)
@dataclass(frozen=True)
class Meeting:
    """What happens among replicas in a step; seconds of idle links.

    Attributes:
        reduce: all gradients of a rank, the last time that they are reduced in a step.
        earlier: reductions after micro-batches before the last (ZeRO 2), each.
        earlier_count: how many of those.
        buckets: of each part of the model.
        reduce_hidden: whether reductions go on behind the backward pass.
        gather: all parameters of a rank.
        gather_hidden: whether gathers go on behind the forward pass.
        blocking: other messages of the step, which all wait for.
        latency: seconds of all of that which messages of no size would take.
        optimizer: seconds that a rank's optimizer takes.
        fixed: once per step.
        free: part of the time that the link among replicas is free while ranks compute, per stage.
    """

    reduce: Number
    earlier: Number
    earlier_count: int
    buckets: int
    reduce_hidden: bool
    gather: Number
    gather_hidden: bool
    blocking: dict[str, Number]
    latency: Number
    optimizer: Number
    fixed: Number
    free: tuple[Number, ...]


def meeting(
    plan: Plan, shape: Transformer, chip: Chip, times: Times, free: Sequence[Number] | None = None
) -> Meeting:
    """What a plan's replicas have to do together.

    Args:
        plan: the plan.
        shape: its model.
        chip: the chip.
        times: of its passes, with the prices of its messages.
        free: part of the time that the link among replicas is free while ranks compute, per stage; all without it.
    """
    reduce = gather = latency = earlier = 0.0
    buckets, again = 1, 1
    blocking: dict[str, Number] = {}
    for message, price in times.step:
        seconds, started = message.each * price.seconds, message.each * price.latency
        if message.dimension in REPLICATED and message.where == GRADIENTS:
            # With ZeRO 2 once for each micro-batch.
            again = plan.passes if plan.zero == 2 else 1
            reduce, latency = reduce + seconds / again, latency + started / again
            earlier = earlier + seconds / again
            buckets = max(buckets, round(message.each / again / plan.chunks))
        elif message.dimension in REPLICATED and message.what == PARAMETERS:
            gather, latency = gather + seconds, latency + started
        else:
            blocking[message.dimension] = blocking.get(message.dimension, 0.0) + seconds
            latency = latency + started
    return Meeting(
        reduce=reduce,
        earlier=earlier,
        earlier_count=again - 1,
        buckets=buckets,
        reduce_hidden=plan.overlap.gradients,
        gather=gather,
        gather_hidden=plan.overlap.parameters,
        blocking=blocking,
        latency=latency,
        optimizer=optimizer_time(plan, shape, chip),
        fixed=chip.efficiency.step,
        free=tuple(free) if free is not None else (1.0,) * plan.pp,
    )


def free_part(plan: Plan, times: Times, prices: AbstractPrices) -> tuple[Number, ...]:
    """Part of the time that the tier which replicas reduce across is free of what ranks wait for, per stage."""
    groups = plan.groups
    crossed = {prices.tier(group) for group in (groups.gradient, groups.edp) if group.axes}
    inside = (("tp", groups.tp), ("cp", groups.cp), ("ep", groups.ep), ("etp", groups.etp))
    taken = [name for name, group in inside if prices.tier(group) in crossed]
    if not taken:
        return (1.0,) * len(times.parts)
    # Many stages have the same parts.
    known: dict[tuple[int, ...], Number] = {}
    found: list[Number] = []
    for stage in times.parts:
        key = tuple(map(id, stage))
        if key not in known:
            passes = [getattr(part, name) for part in stage for name in PASSES]
            busy = sum(one.seconds for one in passes)
            used = sum(one.waiting.get(name, 0.0) for one in passes for name in taken)
            known[key] = 1.0 - used / busy
        found.append(known[key])
    return tuple(found)


def optimizer_time(plan: Plan, shape: Transformer, chip: Chip) -> Number:
    """Seconds in which a rank's optimizer reads gradients, reads and writes its state, and writes weights."""
    formats = plan.formats
    master = 0.0 if formats.master_weights == formats.weights else FORMAT_BYTES[formats.master_weights]
    moments = MOMENTS[plan.optimizer] * FORMAT_BYTES[formats.optimizer_states]
    width = FORMAT_BYTES[formats.main_gradients] + 2 * (master + moments) + FORMAT_BYTES[formats.weights]
    shards = (plan.zero_group, plan.expert_zero_group) if plan.zero else (1, 1)
    held = held_parts(shape, plan)
    most = 0.0
    for stage in distinct_stages(shape, plan):
        dense, experts = (sum(part[kind] for part in held[stage]) for kind in (0, 1))
        most = max(most, dense / shards[0] + experts / shards[1])
    return most * width / (chip.memory_bandwidth * chip.efficiency.memory)


@dataclass(frozen=True)
class Ending:
    """The end of a step.

    Attributes:
        step: seconds from the first forward to the end.
        exposed: of that, what replicas add to the pipeline's makespan: gradients and parameters.
    """

    step: Number
    exposed: Number


def ending(
    meeting: Meeting,
    *,
    makespan: Number,
    end: Any,
    first_start: Any,
    gradient_end: Any,
    gradient_duration: Any,
    stretch: Number = 1.0,
    extra: Number = 0.0,
    across: Callable[[Number], Number] = lambda number: number,
) -> Ending:
    """When a step is over; each time is that of the slowest replica.

    Args:
        meeting: what replicas do.
        makespan: when the last stage is done.
        end: when each stage is done: a sequence over stages.
        first_start: when each part's first forward starts, and
        gradient_end: when its last gradients are there, and
        gradient_duration: how long the pass takes that they come from: sequences over stages, of sequences over chunks.
        stretch: factor on reductions and gathers.
        extra: seconds that they take beside.
        across: reduces to the largest where several stages are in one array, as one entry of the sequences.
    """
    stages, chunks = len(end), len(gradient_end[0])
    reduce, gather = meeting.reduce * stretch + extra, meeting.gather * stretch
    late = []
    for stage in range(stages):
        free, part = meeting.free[stage], reduce / chunks
        done = end[stage]
        if _is_nothing(reduce):
            late.append(done)
            continue
        if not meeting.reduce_hidden:
            done = done + reduce + meeting.earlier_count * meeting.earlier * stretch
        else:
            found: Number = 0.0
            # Parts are done from the last to the first.
            for chunk in reversed(range(chunks)):
                ready, took = gradient_end[stage][chunk], gradient_duration[stage][chunk]
                found = reduction(part, meeting.buckets, ready, free * took, found).end
            if meeting.earlier_count:
                # Each has the time from one micro-batch to the next, in which stages work or wait for each other.
                period = (end[stage] - first_start[stage][0]) / (meeting.earlier_count + 1)
                left = positive(meeting.earlier * stretch - free * period)
                found = found + meeting.earlier_count * left
            done = maximum(done, found)
        late.append(done)
    exposed = across(largest(late)) - makespan
    gathered: Number = gather
    if meeting.gather_hidden and not _is_nothing(gather):
        # What is not there when it is needed; the first stage waits for the most.
        gathered = 0.0
        for stage in range(stages):
            for chunk in range(chunks):
                start, took = first_start[stage][chunk], gradient_duration[stage][chunk] / 3.0
                before, whole = gather * chunk / chunks, gather * (chunk + 1) / chunks
                first = before + gather / chunks / meeting.buckets
                gathered = largest((gathered, first - start, whole - start - meeting.free[stage] * took))
    exposed = exposed + across(gathered)
    rest = meeting.optimizer + meeting.fixed + sum(meeting.blocking.values())
    return Ending(makespan + exposed + rest, exposed)


class Reduction(NamedTuple):
    """When the gradients of a part are reduced.

    Attributes:
        first: when its first bucket is ready, and the link is free for it.
        end: when its last one is reduced.
    """

    first: Number
    end: Number


def reduction(part: Number, buckets: int, ready: Number, took: Number, before: Number) -> Reduction:
    """The recursion over the buckets of a part, worked out.

    Args:
        part: seconds of all buckets.
        buckets: how many.
        ready: when the last one is.
        took: of the pass that the gradients come from, what the link is free for.
        before: when the part before it is reduced.
    """
    first = ready - took * (1.0 - 1.0 / buckets)
    end = largest((before + part, first + part, ready + part / buckets))
    return Reduction(maximum(before, first), end)


def _is_nothing(seconds: Number) -> bool:
    """Whether there is nothing to do, which is known only of a number that is not traced."""
    return isinstance(seconds, float | int) and seconds == 0
