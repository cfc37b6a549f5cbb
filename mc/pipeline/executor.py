r"""A step of a pipeline in time: one (max, +) recursion for all schedules.

Operation j of a stage starts when the one before it has ended and what it waits for has arrived,

    end[j] = max(end[j − 1], max over its messages (end of the sender + transfer)) + duration[j],

level by level (`mc.pipeline.levels`), all stages and the whole batch at a time. The recursion is linear in (max, +), and
exact for any durations, drawn or measured. With blocking transfers a stage cannot go on before its message is over:
end[j − 1] then has its transfer added.

With equal durations it gives the bubbles of the textbooks (`mc.pipeline.bubble`). With random ones a stage waits for
its neighbours and not for everybody: a forward sweep is last-passage percolation on the grid of micro-batches and stages
(K. Johansson, Comm. Math. Phys. 209 (2000)), whose fluctuations are smaller than those of a barrier per operation.

The batch is the last axis, so that the arithmetic runs along memory. It can hold replicas, samples, sets of
parameters, or all of them. Nothing is kept but what later levels wait for and what `Finish` reports; who has more samples
than fit works through them in pieces of about `batch_for` (draws that are numbered, as `Draws` are, do not depend on the
pieces).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from mc.pipeline.finish import Finish
from mc.pipeline.order import PipelineError
from mc.pipeline.timetable import Rows, Timetable
from mc.pipeline.transfer import Transfer

# Numbers in a level: enough that the compiler shares them among cores; and in the state: few enough for their caches.
_LEVEL, _STATE = 1 << 16, 1 << 22
_LEAST = 32

Duration = Callable[[Rows], Float[Array, "stages batch"]]


class _State(eqx.Module):
    """Updated every level: when stages are free, have been busy and have ended what; records now and then."""

    free: Float[Array, "stages batch"]
    end: Float[Array, "stages batch"] | None
    busy: Float[Array, "stages batch"]
    kept: Float[Array, "depth stages batch"]
    ends: Float[Array, "slots stages batch"]
    durations: Float[Array, "slots stages batch"]


class _Now(eqx.Module):
    """A level of the timetable."""

    index: Int[Array, ""]
    rows: Rows
    waits: Int[Array, "inputs stages"]
    route: Int[Array, "inputs stages"]
    sent: Int[Array, "inputs stages"]
    slot: Int[Array, " records"]
    recorded: Int[Array, "records stages"]


def batch_for(timetable: Timetable) -> int:
    """How large a batch is worked out fastest: on all cores, with the state in cache."""
    rows = timetable.stages * (timetable.depth + 4 * timetable.chunks)
    return max(_LEAST, min(_LEVEL // timetable.stages, _STATE // rows))


def completion(
    timetable: Timetable,
    duration: Duration | ArrayLike,
    batch: int,
    *,
    transfer: Transfer | None = None,
    late: Duration | None = None,
    start: ArrayLike | None = None,
) -> Finish:
    """When a step's pipeline is complete, for a batch of durations.

    Meant to be called under `jit`; differentiable.

    Args:
        timetable: what is done in which order.
        duration: seconds of operations: a function of a level's `Rows` that gives [stages, batch], traced once (what
            it gives for rows that are not active is ignored); or an array [stages, operations] or
            [stages, operations, batch] in the order of the stages' sequences, as measured for example.
        batch: how many evaluations.
        transfer: seconds of messages; none without it.
        late: seconds that the messages of operations take beside, each by its own draw: as a function of `duration`.
        start: when stages can start: [stages] or [stages, batch]; at 0 without it.

    Returns:
        Times, each with the batch as last axis.

    Raises:
        PipelineError: an array that does not have such a shape.
    """
    real = jnp.result_type(float)
    shape = (timetable.stages, batch)
    draw = duration if callable(duration) else _replay(timetable, jnp.asarray(duration, real), batch)
    begin = jnp.broadcast_to(_column("start", 0.0 if start is None else start, shape), shape)
    routes = None if transfer is None else _routes(transfer, shape)
    blocking = transfer is not None and transfer.blocking
    slots = 2 * timetable.chunks
    first = _State(
        free=begin,
        end=begin if blocking else None,
        busy=jnp.zeros(shape, real),
        kept=jnp.zeros((timetable.depth, *shape), real),
        ends=jnp.zeros((slots, *shape), real),
        durations=jnp.zeros((slots, *shape), real),
    )

    def level(state: _State, now: _Now) -> tuple[_State, None]:
        active = now.rows.active[:, None]
        took = jnp.broadcast_to(jnp.where(active, draw(now.rows), 0.0), shape)
        begun = state.free
        ended = state.kept.reshape(-1, batch)
        for waits, route in zip(now.waits, now.route, strict=True):
            arrived = ended[jnp.maximum(waits, 0)]
            if routes is not None:
                arrived = arrived + routes[route]
            begun = jnp.maximum(begun, jnp.where((waits >= 0)[:, None], arrived, -jnp.inf))
        end = begun + took
        free = arriving = end
        if late is not None:
            sends = jnp.any(now.sent < 2 * timetable.stages, axis=0)[:, None]
            arriving = end + jnp.where(sends, late(now.rows), 0.0)
        if blocking:
            assert routes is not None
            for sent in now.sent:
                free = jnp.maximum(free, arriving + routes[sent])
        ends, durations = state.ends, state.durations
        for slot, mine in zip(now.slot, now.recorded, strict=True):
            ends = _put(ends, slot, mine, end)
            durations = _put(durations, slot, mine, took)
        after = _State(
            free=free,
            end=jnp.where(active, end, state.end) if state.end is not None else None,
            busy=state.busy + took,
            kept=jax.lax.dynamic_update_index_in_dim(state.kept, arriving, now.index % timetable.depth, 0),
            ends=ends,
            durations=durations,
        )
        return after, None

    index = jnp.arange(timetable.levels, dtype=jnp.int32)
    columns = _Now(
        index,
        timetable.rows,
        timetable.waits,
        timetable.route,
        timetable.sent,
        timetable.slot,
        timetable.recorded,
    )
    last, _ = jax.lax.scan(level, first, columns)
    end = last.free if last.end is None else last.end
    chunks = timetable.chunks
    return Finish(
        makespan=jnp.max(end, axis=0),
        end=end,
        busy=last.busy,
        first_start=jnp.swapaxes(last.ends[:chunks] - last.durations[:chunks], 0, 1),
        gradient_end=jnp.swapaxes(last.ends[chunks:], 0, 1),
        gradient_duration=jnp.swapaxes(last.durations[chunks:], 0, 1),
    )


def _put(
    records: Float[Array, "slots stages batch"],
    slot: Int[Array, ""],
    mine: Int[Array, " stages"],
    value: Float[Array, "stages batch"],
) -> Float[Array, "slots stages batch"]:
    old = jax.lax.dynamic_index_in_dim(records, slot, 0, keepdims=False)
    return jax.lax.dynamic_update_index_in_dim(records, jnp.where(mine[:, None], value, old), slot, 0)


def _replay(timetable: Timetable, measured: Float[Array, "..."], batch: int) -> Duration:
    expected = (timetable.stages, timetable.operations)
    if measured.shape not in (expected, (*expected, batch)):
        raise PipelineError(
            f"duration: expected an array of shape {list(expected)} or {[*expected, batch]}; got "
            f"{list(measured.shape)}"
        )
    stage = jnp.arange(timetable.stages)

    def found(rows: Rows) -> Float[Array, "stages batch"]:
        own = measured[stage, rows.position]
        return own if own.ndim == 2 else jnp.broadcast_to(own[:, None], (timetable.stages, batch))

    return found


def _column(name: str, value: ArrayLike, shape: tuple[int, int]) -> Float[Array, "stages #batch"]:
    found = jnp.asarray(value, jnp.result_type(float))
    if found.ndim == 0:
        return jnp.full((shape[0], 1), found)
    if found.shape not in (shape, shape[:1]):
        raise PipelineError(
            f"{name}: expected {shape[0]} times, or {shape[0]} x {shape[1]}; got an array of shape "
            f"{list(found.shape)}"
        )
    return found if found.ndim == 2 else found[:, None]


def _routes(transfer: Transfer, shape: tuple[int, int]) -> Float[Array, "routes #batch"]:
    forward = _column("transfer.forward", transfer.forward, shape)
    backward = _column("transfer.backward", transfer.backward, shape)
    width = max(forward.shape[1], backward.shape[1])
    none = jnp.zeros((1, width), forward.dtype)
    parts = [jnp.broadcast_to(part, (shape[0], width)) for part in (forward, backward)]
    return jnp.concatenate([*parts, none])
