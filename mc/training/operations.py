"""The operations of sampled steps one by one: what `pipelines` draws as it goes, kept."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from mc.pipeline import Rows, Timetable, Transfer
from mc.training.sampler import Disturbance


class Operations(NamedTuple):
    """Seconds by level, stage and batch, of JAX or NumPy; meaningless where a stage does nothing in a level.

    Attributes:
        computing: with what slows it down.
        waiting: for messages among the ranks of the stage.
        host: beyond that.
        late: what the message that an operation sends takes beside.
        transfer: of messages between stages; None where there is one.
    """

    computing: Any
    waiting: Any
    host: Any
    late: Any
    transfer: Transfer | None


def operations(timetable: Timetable, found: Disturbance) -> Operations:
    """All operations of a batch of steps, which should be small: everything is kept."""
    shape = (timetable.stages, found.batch)

    def level(rows: Rows) -> tuple[Array, Array, Array, Array]:
        took = found.took(rows)
        late = jnp.zeros(shape) if found.late is None else found.late(rows)
        columns = took.computing, took.waiting + took.routing, took.host, late
        computing, waiting, host, late = (jnp.broadcast_to(each, shape) for each in columns)
        return computing, waiting, host, late

    computing, waiting, host, late = jax.lax.map(level, timetable.rows)
    return Operations(computing, waiting, host, late, found.transfer)
