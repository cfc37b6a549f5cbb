"""The end of a step against cases worked out by hand, and against a loop over buckets."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from mc.training import Meeting, ending

NOTHING = Meeting(
    reduce=0.0, earlier=0.0, earlier_count=0, buckets=1, reduce_hidden=True, gather=0.0, gather_hidden=True,
    blocking={}, latency=0.0, optimizer=0.0, fixed=0.0, free=(1.0,),
)  # fmt: skip


def end_of(meeting, *, end=(10.0,), start=((0.0,),), gradient=((10.0,),), took=((2.0,),), **others):
    makespan = max(end)
    return ending(
        meeting, makespan=makespan, end=list(end), first_start=start, gradient_end=gradient,
        gradient_duration=took, **others,
    )  # fmt: skip


def test_nothing_to_do_adds_nothing():
    found = end_of(NOTHING)
    assert (found.step, found.exposed) == (10.0, 0.0)


def test_fixed_costs_and_blocking_messages_are_added():
    found = end_of(replace(NOTHING, optimizer=0.5, fixed=0.25, blocking={"tp": 1.0, "pp": 2.0}))
    assert (found.step, found.exposed) == (13.75, 0.0)


def test_one_bucket_is_all_exposed():
    assert end_of(replace(NOTHING, reduce=3.0)).exposed == 3.0


def test_of_many_short_buckets_the_last_is_exposed():
    # Gradients come out over 2 seconds, as much as four buckets of 0.5 take: the last is ready at 10.
    assert end_of(replace(NOTHING, reduce=2.0, buckets=4)).exposed == pytest.approx(0.5)


def test_long_buckets_hide_while_gradients_come_out():
    # The first of four buckets of 1 second is ready at 8.5.
    assert end_of(replace(NOTHING, reduce=4.0, buckets=4)).exposed == pytest.approx(2.5)


def test_not_hidden_is_all_exposed():
    assert end_of(replace(NOTHING, reduce=4.0, buckets=4, reduce_hidden=False)).exposed == 4.0


def test_an_early_stage_hides_its_reduction():
    # The second stage is done at 6 of 10 seconds.
    keys = {"end": (10.0, 6.0), "start": ((0.0,),) * 2, "gradient": ((10.0,), (6.0,)), "took": ((2.0,),) * 2}
    one = replace(NOTHING, free=(1.0, 1.0))
    assert end_of(replace(one, reduce=3.0), **keys).exposed == 3.0
    late = {**keys, "gradient": ((5.0,), (6.0,))}
    assert end_of(replace(one, reduce=4.0), **late).exposed == 0.0


def test_gathers_that_hide_are_waited_for_at_the_first_layer():
    # Nothing is there before the first bucket of four; the forward pass, a third of 2 seconds, hides no more of the rest.
    assert end_of(replace(NOTHING, gather=0.4, buckets=4)).exposed == pytest.approx(0.1)
    assert end_of(replace(NOTHING, gather=4.0, buckets=4)).exposed == pytest.approx(4.0 - 2.0 / 3.0)
    # A stage that starts later has them by then.
    assert end_of(replace(NOTHING, gather=0.4, buckets=4), start=((0.5,),)).exposed == 0.0
    assert end_of(replace(NOTHING, gather=0.4, gather_hidden=False), start=((0.5,),)).exposed == 0.4


def test_reductions_of_zero_2_hide_between_micro_batches():
    # Three before the last; the step has 10/4 seconds for each of 4.
    found = end_of(replace(NOTHING, reduce=4.0, earlier=4.0, earlier_count=3))
    assert found.exposed == pytest.approx(4.0 + 3 * 1.5)


def looped(meeting, *, end, start, gradient, took):
    """Bucket by bucket: each waits for its gradients and for the bucket before it."""
    late = []
    for stage, done in enumerate(end):
        chunks = len(gradient[stage])
        link = 0.0
        for chunk in reversed(range(chunks)):
            window = meeting.free[stage] * took[stage][chunk]
            for bucket in range(1, meeting.buckets + 1):
                ready = gradient[stage][chunk] - window * (1 - bucket / meeting.buckets)
                link = max(link, ready) + meeting.reduce / chunks / meeting.buckets
        late.append(max(done, link))
    return max(late) - max(end)


def random_case(rng, stages=3, chunks=2):
    took = rng.uniform(0.1, 1.0, (stages, chunks))
    # Later chunks are done before earlier ones.
    gradient = 5.0 + np.cumsum(rng.uniform(0.0, 2.0, (stages, chunks))[:, ::-1], axis=1)[:, ::-1]
    end = gradient.max(axis=1) + rng.uniform(0.0, 0.5, stages)
    start = np.cumsum(rng.uniform(0.0, 0.5, (stages, chunks)), axis=1)
    return {
        "end": tuple(end.tolist()),
        "start": start.tolist(),
        "gradient": gradient.tolist(),
        "took": took.tolist(),
    }


def test_the_recursion_over_buckets_is_worked_out():
    rng = np.random.default_rng(2)
    for _ in range(200):
        meeting = replace(
            NOTHING,
            reduce=rng.exponential(2.0),
            buckets=int(rng.integers(1, 9)),
            free=tuple(rng.uniform(0, 1, 3)),
        )
        case = random_case(rng)
        assert end_of(meeting, **case).exposed == pytest.approx(looped(meeting, **case), abs=1e-12)


def test_longer_is_never_shorter():
    rng = np.random.default_rng(3)
    for _ in range(50):
        meeting = replace(
            NOTHING, reduce=1.5, earlier=1.5, earlier_count=int(rng.integers(0, 3)), buckets=4, gather=1.0,
            blocking={"tp": 0.1}, optimizer=0.1, fixed=0.1, free=tuple(rng.uniform(0, 1, 3)),
        )  # fmt: skip
        case = random_case(rng)
        base = end_of(meeting, **case).step
        longer = [
            replace(meeting, reduce=2.0), replace(meeting, earlier=2.0), replace(meeting, gather=1.4),
            replace(meeting, blocking={"tp": 0.2}), replace(meeting, optimizer=0.2), replace(meeting, fixed=0.2),
            replace(meeting, free=tuple(0.5 * each for each in meeting.free)),
            replace(meeting, reduce_hidden=False), replace(meeting, gather_hidden=False),
        ]  # fmt: skip
        for each in longer:
            assert end_of(each, **case).step >= base - 1e-12
        assert end_of(meeting, **case, stretch=1.5).step >= base
        assert end_of(meeting, **case, extra=0.5).step >= base
        later = {**case, "gradient": [[each + 0.3 for each in row] for row in case["gradient"]]}
        assert end_of(meeting, **later).step >= base - 1e-12


@pytest.mark.parametrize("hidden", [True, False])
def test_samples_in_arrays_end_as_numbers_do(hidden):
    rng = np.random.default_rng(5)
    cases = [random_case(rng) for _ in range(7)]
    meeting = replace(
        NOTHING, reduce=1.5, earlier=1.2, earlier_count=2, buckets=4, gather=1.0, optimizer=0.1,
        free=(0.2, 0.5, 1.0), reduce_hidden=hidden, gather_hidden=hidden,
    )  # fmt: skip
    stretch, extra = rng.uniform(1, 2, 7), rng.uniform(0, 1, 7)
    one = [
        end_of(meeting, **case, stretch=float(a), extra=float(b)).step
        for case, a, b in zip(cases, stretch, extra, strict=True)
    ]

    def stacked(name):
        return jnp.moveaxis(jnp.asarray([case[name] for case in cases]), 0, -1)

    def by_chunk(name):
        return [[stacked(name)[:, chunk] for chunk in range(2)]]

    # All stages in one entry, as the sampler has them.
    found = ending(
        replace(meeting, free=(jnp.asarray(meeting.free)[:, None],)),
        makespan=jnp.max(stacked("end"), axis=0), end=[stacked("end")], first_start=by_chunk("start"),
        gradient_end=by_chunk("gradient"), gradient_duration=by_chunk("took"),
        stretch=jnp.asarray(stretch)[None], extra=jnp.asarray(extra)[None],
        across=lambda values: jnp.max(values, axis=0),
    )  # fmt: skip
    np.testing.assert_allclose(found.step, one, rtol=1e-5)
