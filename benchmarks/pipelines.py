"""Pipelines: sampled steps per second, evaluations without noise, and a step against an event simulator.

A step is that of 128 replicas, of which the slowest counts; every operation of every replica draws a lognormal factor. The
event simulator is SimPy, with a process per stage and an event per message.
"""

import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import simpy

from benchmarks.measure import Finding, at_least, at_most, best_of, seconds
from mc.delays import Lognormal
from mc.pipeline import (
    Fixed,
    Kind,
    Order,
    Transfer,
    batch_for,
    by_kind,
    completion,
    draws_of,
    makespan,
    order_of,
    timetable_of,
)

_KEY = jax.random.key(0)
_REPLICAS = 128
_SIGMA = 0.1


def run(*, quick: bool) -> Iterator[Finding]:
    """The targets of the executor of pipelines."""
    steps, repeats = (32, 2) if quick else (128, 5)
    yield from _sampled(steps, repeats)
    yield from _evaluated(1 << (12 if quick else 15), repeats)
    yield _one_by_one(repeats)


def _sampled(steps: int, repeats: int) -> Iterator[Finding]:
    plain, interleaved = ("1f1b", 16, 16, 1), ("interleaved", 16, 16, 8)
    rate = 4 * steps / best_of(_sampler(plain, 4 * steps), repeats=repeats)
    yield at_least(_name(plain), rate, "/s", 500, _operations(plain, rate))
    order = order_of(*plain)
    one = min(seconds(lambda: _simpy(order)) for _ in range(repeats))
    note = f"SimPy takes {one:.2g} s for one"
    yield at_least("1f1b: a replica's step, against SimPy", one * rate * _REPLICAS, "x", 50, note)
    rate = steps / best_of(_sampler(interleaved, steps), repeats=repeats)
    yield at_least(_name(interleaved), rate, "/s", 100, _operations(interleaved, rate))
    rate = steps / best_of(_sampler(interleaved, steps, law=Lognormal(1.0, _SIGMA)), repeats=repeats)
    note = "as any law of mc.delays is drawn"
    yield at_least("interleaved: the same of 64-bit levels", rate, "/s", 40, note)


def _name(case: tuple[str, int, int, int]) -> str:
    schedule, stages, micro_batches, chunks = case
    return f"{schedule}, p = {stages}, m = {micro_batches}, v = {chunks}: steps of {_REPLICAS} replicas"


def _operations(case: tuple[str, int, int, int], rate: float) -> str:
    operations = rate * _REPLICAS * 2 * case[1] * case[2] * case[3] / 1e6
    return f"{operations:.0f} M operations/s, each a 32-bit normal number"


def _sampler(
    case: tuple[str, int, int, int], steps: int, law: Lognormal | None = None
) -> Callable[[], jax.Array]:
    table = timetable_of(*case)
    per_piece = max(1, batch_for(table) // _REPLICAS)
    batch = per_piece * _REPLICAS
    base = by_kind(table.stages, table.chunks, 1.0, 1.0, 1.0)
    late = Transfer(1e-3, 1e-3)

    def piece(index: jax.Array) -> jax.Array:
        column = index * batch + jnp.arange(batch, dtype=jnp.uint32)
        draws = draws_of(_KEY, column // _REPLICAS, column % _REPLICAS)
        fixed = Fixed(table, base)

        def duration(rows):
            if law is None:
                return fixed(rows) * jnp.exp(_SIGMA * draws.normals(rows)[0])
            return fixed(rows) * law.quantile(draws.levels(rows))

        found = completion(table, duration, batch, transfer=late)
        slowest = jnp.max(found.makespan.reshape(per_piece, _REPLICAS), axis=1)
        # What overlaps with the step is needed too.
        return slowest + 1e-6 * jnp.max(found.gradient_end) + 1e-6 * jnp.max(found.first_start)

    pieces = jnp.arange(-(-steps // per_piece), dtype=jnp.uint32)
    run = jax.jit(lambda pieces: jax.lax.map(piece, pieces).reshape(-1)[:steps])
    return lambda: run(pieces)


def _evaluated(count: int, repeats: int) -> Iterator[Finding]:
    batch = 256
    for micro_batches in (16, 32):
        table = timetable_of("1f1b", 16, micro_batches)

        def evaluate(times: jax.Array, table=table) -> jax.Array:
            forward, inputs, weights = times
            fixed = Fixed(table, by_kind(table.stages, 1, forward, inputs, weights))
            found = completion(table, fixed, batch, transfer=Transfer(1e-3, 1e-3))
            return found.makespan + found.gradient_end[0, 0] + found.first_start[-1, 0] + found.busy[0]

        times = jnp.asarray(
            np.random.default_rng(0).uniform(1, 2, (count // batch, 3, 16, 1, batch)), jnp.float32
        )
        every = jax.jit(lambda times, evaluate=evaluate: jax.lax.map(evaluate, times))
        rate = count / best_of(functools.partial(every, times), repeats=repeats) / 1e3
        note = f"{count:,} sets of durations of all stages, as a batch"
        yield at_least(f"1f1b, p = 16, m = {micro_batches}: evaluations", rate, "thousand/s", 100, note)


def _one_by_one(repeats: int) -> Finding:
    forward, inputs, weights = np.random.default_rng(0).uniform(1, 2, (3, 16, 1))

    def many() -> None:
        for _ in range(20):
            makespan("1f1b", 16, 32, forward=forward, backward_input=inputs, backward_weight=weights)

    time = best_of(many, repeats=repeats) / 20 * 1e3
    return at_most(
        "1f1b, p = 16, m = 32: one evaluation", time, "ms", 0.5, "without JAX, in double precision"
    )


def _simpy(order: Order) -> float:
    world = simpy.Environment()
    rng = np.random.default_rng(0)
    shape = (2, order.stages, order.micro_batches)
    sent = np.array([world.event() for _ in range(np.prod(shape))], object).reshape(shape)

    def stage(place: int):
        for operation in order.sequence(place):
            backward = int(operation.kind == Kind.BACKWARD)
            source = place + 1 if backward else place - 1
            if 0 <= source < order.stages:
                yield sent[backward, source, operation.micro_batch]
            yield world.timeout((1.0 + backward) * rng.lognormal(0.0, _SIGMA))
            sent[backward, place, operation.micro_batch].succeed()

    for place in range(order.stages):
        world.process(stage(place))
    world.run()
    return world.now
