"""Levels: which operations can be worked out together, and where they find what they wait for.

An operation waits for the one before it on its stage, and for at most two messages: a forward for the activations of
the part before, a backward for the gradients of the part after, a joint operation for both. Its *level* is one more
than the highest level of those. A level has one operation per stage at most, so the (max, +) recursion over a step is a
scan over levels, whatever the schedule. Levels are where operations would be if each took one unit of time, and that is
how they are found.

What a message carries is needed for a few levels only; ends are kept in a ring of as many levels as the longest wait.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mc.pipeline.order import Kind, Order, PipelineError
from mc.pipeline.registry import order_of

# Of each kind, whether it goes forward, makes gradients of inputs, makes gradients of weights; idle is the last.
_FORWARD = np.array([True, False, False, False, True, False])
_INPUT = np.array([False, True, True, False, True, False])
_WEIGHT = np.array([False, True, False, True, True, False])


@dataclass(frozen=True, eq=False)
class Levels:
    """An order in levels. Make one with `levels_of`.

    *Routes* number what messages cross: route b < p takes activations over boundary b, route p + b gradients, route
    2p is free. Boundary b lies between stages b and b + 1, the last between the last stage and the first.

    Attributes:
        order: the order.
        position: int[levels, stages], which operation of its sequence each stage does; −1 for none.
        source: int[inputs, levels, stages], level in which the end of what an operation waits for was worked out; −1
            where it waits for no other stage.
        sender: int[inputs, levels, stages], the stage that it waits for.
        route: int[inputs, levels, stages], what the message crosses.
        sent: int[inputs, levels, stages], routes of the messages that the operation sends.
        depth: levels that have to be kept.
    """

    order: Order
    position: NDArray[np.int64]
    source: NDArray[np.int64]
    sender: NDArray[np.int64]
    route: NDArray[np.int64]
    sent: NDArray[np.int64]
    depth: int

    @property
    def count(self) -> int:
        """How many levels."""
        return self.position.shape[0]

    def taken(self, column: NDArray[np.int64]) -> NDArray[np.int64]:
        """int[levels, stages] from int[stages, operations]; −1 where a stage does nothing."""
        stage = np.arange(self.order.stages)
        return np.where(self.position >= 0, column[stage, np.maximum(self.position, 0)], -1)


def levels_of(
    schedule: str, stages: int, micro_batches: int, chunks: int | None = None, *, group: int | None = None
) -> Levels:
    """The levels of a schedule; see `order_of`. Built once for the same numbers."""
    return _cached(order_of(schedule, stages, micro_batches, chunks, group=group))


@lru_cache(maxsize=512)
def _cached(order: Order) -> Levels:
    return in_levels(order)


def in_levels(order: Order) -> Levels:
    """The levels of an order.

    Raises:
        PipelineError: the stages would wait for each other for ever.
    """
    waits, makes, route, sent = _messages(order)
    outputs = 2 * order.parts * order.micro_batches
    ready, made_in = _units(order, waits, makes, outputs)
    stage = np.arange(order.stages)
    made_by = np.full(outputs + 1, -1)
    for column in makes:
        made_by[column] = stage[:, None]
    position = np.where(ready, np.cumsum(ready, axis=0) - 1, -1)
    at = np.maximum(position, 0)
    active = position >= 0
    waited = np.where(active, waits[:, stage, at], outputs)
    sender = made_by[waited]
    # What the stage itself made is there already, as its operations follow each other.
    foreign = (waited < outputs) & (sender != stage)
    source = np.where(foreign, made_in[waited], -1)
    age = np.where(foreign, np.arange(len(position))[:, None] - source, 1)
    free = 2 * order.stages
    levels = Levels(
        order=order,
        position=position,
        source=source,
        sender=np.where(foreign, sender, -1),
        route=np.where(foreign, route[:, stage, at], free),
        sent=np.where(active, sent[:, stage, at], free),
        depth=int(age.max()),
    )
    for table in (levels.position, levels.source, levels.sender, levels.route, levels.sent):
        table.setflags(write=False)
    return levels


def _units(
    order: Order, waits: NDArray[np.int64], makes: NDArray[np.int64], outputs: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Run the order with operations of one unit of time.

    Returns:
        bool[units, stages], who does something when; and when each output was made, before the first unit for what
        is always there.
    """
    nothing, never, lost = outputs, outputs + 1, outputs + 2
    made_in = np.full(outputs + 3, np.iinfo(np.int64).max)
    made_in[nothing] = -1
    # One operation more than there are, for which a stage at its end waits.
    width = order.operations + 1
    table = np.full((2, len(waits), order.stages, width), never)
    table[0, :, :, :-1] = np.where(order.kind == Kind.IDLE, never, waits)
    table[1, :, :, :-1] = np.where(makes == nothing, lost, makes)
    waits_flat, makes_flat = table.reshape(2, len(waits), -1)
    at = np.arange(order.stages) * width
    rows: list[NDArray[np.bool_]] = []
    for now in range(order.stages * width):
        ready = made_in.take(waits_flat[0].take(at)) < now
        for column in waits_flat[1:]:
            ready &= made_in.take(column.take(at)) < now
        if not ready.any():
            break
        rows.append(ready)
        done = at[ready]
        for column in makes_flat:
            made_in[column.take(done)] = now
        at += ready
    left = (order.kind != Kind.IDLE).sum(axis=1) - (at - np.arange(order.stages) * width)
    if left.any():
        late = int(np.flatnonzero(left)[0])
        raise PipelineError(
            f"order: expected operations that can all run; got stage {late} waiting for ever with {left[late]} "
            "of them left"
        )
    return np.array(rows), made_in


def last_gradients(order: Order) -> NDArray[np.int64]:
    """int[stages, chunks]: position of the last operation that makes gradients of the weights of a chunk."""
    chunk = np.where(order.kind == Kind.JOINT, order.back_chunk, order.chunk)
    mine = _WEIGHT[order.kind][:, None] & (chunk[:, None] == np.arange(order.chunks)[:, None])
    return order.operations - 1 - np.argmax(mine[:, :, ::-1], axis=2)


def first_forwards(order: Order) -> NDArray[np.int64]:
    """int[stages, chunks]: position of the first forward of a chunk."""
    mine = _FORWARD[order.kind][:, None] & (order.chunk[:, None] == np.arange(order.chunks)[:, None])
    return np.argmax(mine, axis=2)


def _messages(order: Order) -> tuple[NDArray[np.int64], ...]:
    """For each operation: which outputs it waits for, which it makes, routes to it, routes from it.

    Outputs are numbered: activations of part q of micro-batch i are q·m + i, gradients follow; one more is always
    there. The results have shape [inputs, stages, operations], with two inputs where there are joint operations.
    """
    stage = np.arange(order.stages)[:, None]
    parts, micro_batches, stages = order.parts, order.micro_batches, order.stages
    nothing, free = 2 * parts * micro_batches, 2 * stages
    joint = order.kind == Kind.JOINT
    forward, backward = _FORWARD[order.kind], _INPUT[order.kind]
    # The boundaries behind a part and before it, on the way of its micro-batches.
    after, before = np.arange(stages)[:, None], (np.arange(stages)[:, None] - 1) % stages

    def boundaries(chunk: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        turned = order.bidirectional & (chunk == 1)
        return np.where(turned, before, after), np.where(turned, after, before)

    chunk, micro_batch = order.chunk, order.micro_batch
    part = order.part[stage, chunk]
    behind, ahead = boundaries(chunk)
    output = part * micro_batches + micro_batch
    waits = [np.where(forward & (part > 0), output - micro_batches, nothing)]
    makes = [np.where(forward, output, nothing)]
    route = [ahead]
    sent = [np.where(forward & (part < parts - 1), behind, free)]

    chunk = np.where(joint, order.back_chunk, chunk)
    micro_batch = np.where(joint, order.back_micro_batch, micro_batch)
    part = order.part[stage, chunk]
    behind, ahead = boundaries(chunk)
    output = (parts + part) * micro_batches + micro_batch
    # The last part's backward starts from its own forward, a weights' gradient from its own inputs'.
    of_inputs = np.where(part < parts - 1, output + micro_batches, output - parts * micro_batches)
    waits.append(np.where(backward, of_inputs, np.where(order.kind == Kind.WEIGHT, output, nothing)))
    makes.append(np.where(backward, output, nothing))
    route.append(stages + behind)
    sent.append(np.where(backward & (part > 0), stages + ahead, free))

    if stages == 1:
        # A stage sends itself nothing.
        sent = [np.full_like(column, free) for column in sent]
    columns = (waits, makes, route, sent)
    if joint.any():
        return tuple(np.stack(column) for column in columns)
    # An operation does one or the other.
    return tuple(np.where(forward, first, second)[None] for first, second in columns)
