"""A second implementation: an event loop over dictionaries that knows nothing of levels, tables or routes.

Stages are asked in turn whether their next operation can start; it can when what it waits for is in the dictionary of
what has been made. Arithmetic is in the type of the durations, so that float32 can be compared to the last bit.
"""

import numpy as np

from mc.pipeline.order import Kind


def halves(operation):
    """The (phase, micro-batch, chunk) that an operation does: one, or two of a joint one."""
    kind, micro_batch, chunk, back_micro_batch, back_chunk = operation
    if kind == Kind.JOINT:
        return [("F", micro_batch, chunk), ("FB", back_micro_batch, back_chunk)]
    name = {Kind.FORWARD: "F", Kind.BACKWARD: "FB", Kind.INPUT: "B", Kind.WEIGHT: "W"}
    return [(name[kind], micro_batch, chunk)]


def part_of(order, stage, chunk):
    if order.bidirectional:
        return stage if chunk == 0 else order.stages - 1 - stage
    return chunk * order.stages + stage


def needed(order, stage, operation):
    """(phase, part, micro-batch) of the messages that an operation waits for."""
    last = (order.stages if order.bidirectional else order.stages * order.chunks) - 1
    found = []
    for phase, micro_batch, chunk in halves(operation):
        part = part_of(order, stage, chunk)
        if phase == "F" and part > 0:
            found.append(("activations", part - 1, micro_batch))
        if phase in ("B", "FB") and part < last:
            found.append(("gradients", part + 1, micro_batch))
    return found


def made(order, stage, operation):
    names = {"F": "activations", "B": "gradients", "FB": "gradients"}
    return [
        (names[phase], part_of(order, stage, chunk), micro_batch)
        for phase, micro_batch, chunk in halves(operation)
        if phase in names
    ]


def boundary(order, first, second):
    """The boundary that lies between the stages of two parts that follow each other."""
    if order.bidirectional:
        return min(first, second)
    # Activations go from a stage to the next in the circle.
    return first


def simulate(order, duration, forward=None, backward=None, start=None, blocking=False):
    """Start and end of every operation: two lists per stage.

    `duration[stage][position]`, `forward[boundary]`, `backward[boundary]`, `start[stage]` are numbers.
    """
    stages = order.stages
    last = (stages if order.bidirectional else stages * order.chunks) - 1
    free = [0 * duration[0][0] if start is None else start[stage] for stage in range(stages)]
    sequences = [order.sequence(stage) for stage in range(stages)]
    begins, ends = [[] for _ in range(stages)], [[] for _ in range(stages)]
    at, by = {}, {}

    def cost(what, part, source, target):
        if source == target:
            return 0
        if what == "activations":
            return 0 if forward is None else forward[boundary(order, source, target)]
        return 0 if backward is None else backward[boundary(order, target, source)]

    def place(part, stage, chunk_like):
        # The stage that holds a part on the way of the micro-batch that is at `stage` now.
        if order.bidirectional:
            return part if chunk_like == 0 else stages - 1 - part
        return part % stages

    moved = True
    while moved:
        moved = False
        for stage in range(stages):
            while len(ends[stage]) < len(sequences[stage]):
                operation = sequences[stage][len(ends[stage])]
                wanted = needed(order, stage, operation)
                if not all(key in at for key in wanted):
                    break
                begin = free[stage]
                for key in wanted:
                    arrival = at[key] + cost(key[0], key[1], by[key], stage)
                    begin = max(begin, arrival)
                end = begin + duration[stage][len(ends[stage])]
                begins[stage].append(begin)
                ends[stage].append(end)
                free[stage] = end
                for key, (_, _, chunk) in zip(made(order, stage, operation), halves(operation), strict=False):
                    at[key], by[key] = end, stage
                    step = 1 if key[0] == "activations" else -1
                    if blocking and 0 <= key[1] + step <= last:
                        target = place(key[1] + step, stage, chunk)
                        free[stage] = max(free[stage], end + cost(key[0], key[1], stage, target))
                moved = True
    assert [len(own) for own in ends] == [len(own) for own in sequences], "a circle of waiting"
    return begins, ends


def by_kind(order, forward, inputs, weights, joint=None):
    """Durations of every operation from one number per kind; divided among the chunks that lie in a circle."""
    share = 1 if order.bidirectional else order.chunks
    both = forward + inputs + weights if joint is None else joint
    of = {
        Kind.FORWARD: forward / share,
        Kind.BACKWARD: (inputs + weights) / share,
        Kind.INPUT: inputs / share,
        Kind.WEIGHT: weights / share,
        Kind.JOINT: both,
    }
    return [[of[Kind(each.kind)] for each in order.sequence(stage)] for stage in range(order.stages)]


def makespan(order, duration, **options):
    return max(own[-1] for own in simulate(order, duration, **options)[1])


def in_flight(order, stage, *, until="W"):
    """Most micro-batches times chunks whose activations a stage holds at once, released after B or after W."""
    held, most = 0, 0
    for operation in order.sequence(stage):
        # A joint operation has both at once.
        for phase, _, _ in halves(operation):
            held += phase == "F"
        most = max(most, held)
        for phase, _, _ in halves(operation):
            held -= phase in (("W", "FB") if until == "W" else ("B", "FB"))
    return most


def positions(order, stage):
    """Where each (phase, micro-batch, chunk) stands in the sequence of a stage; a whole backward is both halves."""
    found = {}
    for place, operation in enumerate(order.sequence(stage)):
        for phase, micro_batch, chunk in halves(operation):
            for letter in {"F": "F", "B": "B", "W": "W", "FB": "BW"}[phase]:
                key = (letter, micro_batch, chunk)
                assert key not in found, f"{key} twice on stage {stage}"
                found[key] = place
    return found


def arrays(rows, width, fill=0.0):
    """A [stages, width] array from lists of unequal length."""
    table = np.full((len(rows), width), fill)
    for stage, row in enumerate(rows):
        table[stage, : len(row)] = row
    return table
