"""The executor against the event loop on the same durations, to the last bit; and that it can be used as JAX is."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mc.pipeline import (
    Fixed,
    PipelineError,
    Transfer,
    batch_for,
    by_kind,
    completion,
    levels_of,
    makespan_of,
    timetable_of,
)
from mc.pipeline.levels import first_forwards, last_gradients
from tests.pipeline import reference
from tests.pipeline.cases import EACH, name, random_durations, random_times

BATCH = 3


def found_by_loop(order, durations, column, **times):
    """Begin and end of every operation in one column of the batch, in single precision."""
    rows = [list(row[: len(order.sequence(stage)), column]) for stage, row in enumerate(durations)]
    own = {
        key: value[..., column] if isinstance(value, np.ndarray) else value for key, value in times.items()
    }
    return reference.simulate(order, rows, **own)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("case", EACH, ids=name)
def test_it_is_what_the_event_loop_finds(case, blocking):
    table, order = timetable_of(*case), levels_of(*case).order
    durations = random_durations(order, seed=1, batch=BATCH)
    forward, backward, start = random_times(2, 3, order.stages, BATCH)
    transfer = Transfer(forward, backward, blocking)
    found = jax.jit(lambda *given: completion(table, given[0], BATCH, transfer=transfer, start=given[1]))(
        durations, start
    )
    first, last = first_forwards(order), last_gradients(order)
    stage = np.arange(order.stages)[:, None]
    for column in range(BATCH):
        begins, ends = (
            reference.arrays(each, order.operations)
            for each in found_by_loop(
                order, durations, column, forward=forward, backward=backward, start=start, blocking=blocking
            )
        )
        assert np.array_equal(found.end[:, column], ends.max(axis=1))
        assert np.array_equal(found.makespan[column], ends.max())
        assert np.array_equal(found.gradient_end[:, :, column], ends[stage, last])
        assert np.array_equal(found.gradient_duration[:, :, column], durations[stage, last, column])
        # An end less a duration is a begin to rounding.
        assert found.first_start[:, :, column] == pytest.approx(begins[stage, first], abs=1e-4)
        busy = [row[: len(order.sequence(s)), column].sum() for s, row in enumerate(durations)]
        assert found.busy[:, column] == pytest.approx(np.array(busy), rel=1e-5)


@pytest.mark.parametrize("case", EACH[1:], ids=name)
def test_without_noise_it_is_the_quick_recursion(case):
    # A batch of parameter sets: forward, the halves of the backward, and joint operations.
    table, levels = timetable_of(*case), levels_of(*case)
    stages, chunks = table.stages, table.chunks
    rng = np.random.default_rng(3)
    sets = rng.uniform(0.5, 1.5, (4, stages, chunks, BATCH))
    late = rng.uniform(0, 0.4, (2, stages))

    @jax.jit
    def evaluate(sets, late):
        kinds = by_kind(stages, chunks, *sets)
        return completion(table, Fixed(table, kinds), BATCH, transfer=Transfer(*late))

    found = evaluate(jnp.asarray(sets, jnp.float32), jnp.asarray(late, jnp.float32))
    for column in range(BATCH):
        own = makespan_of(levels, by_kind(stages, chunks, *sets[..., column]), transfer=Transfer(*late))
        for field, value in own._asdict().items():
            assert np.asarray(getattr(found, field))[..., column] == pytest.approx(
                value, rel=2e-6, abs=2e-5
            ), field


def test_durations_may_come_from_a_function_and_one_array_may_serve_all():
    case = EACH[2]
    table, order = timetable_of(*case), levels_of(*case).order
    durations = random_durations(order, seed=4)
    seen = []

    def own(rows):
        seen.append(rows)
        drawn = jnp.asarray(durations)[jnp.arange(table.stages), rows.position]
        # Rows without an operation may hold anything.
        return jnp.where(rows.active, drawn, jnp.nan)[:, None]

    by_function, by_array = jax.jit(lambda: (completion(table, own, 2), completion(table, durations, 2)))()
    assert len(seen) == 1
    assert seen[0].kind.shape == (table.stages,)
    for first, second in zip(by_function, by_array, strict=True):
        assert np.array_equal(first, second)
        assert np.array_equal(first[..., 0], first[..., 1])


def test_rows_say_what_is_done():
    case = EACH[4]
    table, order = timetable_of(*case), levels_of(*case).order
    rows = jax.tree.map(np.asarray, table.rows)
    seen = set()
    for level, stage in zip(*np.nonzero(rows.active), strict=True):
        operation = order.sequence(stage)[rows.position[level, stage]]
        assert operation[:3] == (
            rows.kind[level, stage],
            rows.micro_batch[level, stage],
            rows.chunk[level, stage],
        )
        seen.add((rows.number[level, stage], stage))
    assert len(seen) == rows.active.sum() == sum(len(order.sequence(s)) for s in range(order.stages))
    assert len({number for number, _ in seen}) == len(seen)


def test_numbers_of_operations_do_not_depend_on_the_schedule():
    numbers = []
    for schedule in ("gpipe", "1f1b"):
        rows = jax.tree.map(np.asarray, timetable_of(schedule, 3, 5).rows)
        on = rows.active
        stage = np.broadcast_to(np.arange(3), on.shape)[on]
        numbers.append(
            {
                key: number
                for *key, number in zip(
                    stage, rows.kind[on], rows.micro_batch[on], rows.number[on], strict=True
                )
                for key in [tuple(key)]
            }
        )
    assert numbers[0] == numbers[1]


def test_gradients_are_finite_and_right():
    # The derivative by a duration is how often its operations stand on the longest path.
    table, levels = timetable_of("1f1b", 3, 4), levels_of("1f1b", 3, 4)
    kinds = (
        np.asarray(by_kind(3, 1, 1.0, 1.1, 0.9), np.float32)
        + np.linspace(0, 0.3, 3, dtype=np.float32)[:, None]
    )

    def time(kinds, late):
        return completion(table, Fixed(table, kinds), 1, transfer=Transfer(late, late)).makespan[0]

    slopes, by_late = jax.jit(jax.grad(time, argnums=(0, 1)))(jnp.asarray(kinds), jnp.full(3, 0.05))
    chex.assert_tree_all_finite(slopes)
    step = 1e-4
    for entry in np.ndindex(kinds.shape):
        longer = kinds.astype(float)
        longer[entry] += step
        base, more = (
            makespan_of(levels, each, transfer=Transfer(0.05, 0.05)).makespan for each in (kinds, longer)
        )
        assert slopes[entry] == pytest.approx((more - base) / step, abs=1e-3)
    assert by_late[:2].sum() == pytest.approx(4, abs=1e-5)  # out and back over both boundaries
    assert by_late[2] == 0


def test_monotone_in_every_operation():
    order = levels_of(*EACH[4]).order
    table = timetable_of(*EACH[4])
    base = random_durations(order, seed=7)
    # Column k has operation k longer; the first has none.
    changed = np.repeat(base[..., None], 1 + order.kind.size, axis=2)
    flat = changed.reshape(order.kind.size, -1)
    flat[np.arange(order.kind.size), 1 + np.arange(order.kind.size)] += 0.5
    found = jax.jit(lambda changed: completion(table, changed, changed.shape[2]))(changed)
    assert (found.end >= found.end[:, :1]).all()
    assert (found.makespan <= found.makespan[0] + 0.5 + 1e-4).all()


def test_a_batch_can_be_mapped_over():
    table = timetable_of("gpipe", 2, 2)
    sets = jnp.arange(1.0, 7.0).reshape(2, 3)

    def one(set_):
        return completion(table, Fixed(table, by_kind(2, 1, *set_)), 1).makespan[0]

    # (m + p − 1)(F + B)
    assert jax.jit(jax.vmap(one))(sets) == pytest.approx(3 * np.array([6.0, 15.0]))


def test_how_large_a_batch_is_worked_out_at_once():
    assert batch_for(timetable_of("gpipe", 2, 2)) > batch_for(timetable_of("1f1b", 16, 32))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"duration": np.ones((2, 3))},
            r"duration: expected an array of shape \[2, 4\] or \[2, 4, 5\]; got \[2, 3\]",
        ),
        ({"start": np.ones(3)}, r"start: expected 2 times, or 2 x 5; got an array of shape \[3\]"),
        ({"transfer": Transfer(np.ones(3), 0.0)}, r"transfer.forward: expected 2 times, .* got .* \[3\]"),
        (
            {"transfer": Transfer(0.0, np.ones((2, 4)))},
            r"transfer.backward: expected 2 times, .* got .* \[2, 4\]",
        ),
    ],
)
def test_arrays_of_another_shape_are_refused(given, message):
    table = timetable_of("1f1b", 2, 2)
    given = {"duration": np.ones((2, 4)), **given}
    with pytest.raises(PipelineError, match=message):
        completion(table, given.pop("duration"), 5, **given)
