"""Orders: every operation once, after what it needs, in the memory that the schedule promises; refusals."""

from typing import get_args

import numpy as np
import pytest

from mc.config.plan import Schedule
from mc.errors import InputError
from mc.pipeline import SCHEDULES, Kind, PipelineError, in_flight, order_of
from tests.pipeline import reference
from tests.pipeline.cases import CASES, name


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_operation_stands_once_and_in_order(case):
    order = order_of(*case)
    for stage in range(order.stages):
        found = reference.positions(order, stage)
        if order.bidirectional:
            half = order.micro_batches // 2
            pairs = {(i, int(i >= half)) for i in range(order.micro_batches)}
        else:
            pairs = {(i, c) for i in range(order.micro_batches) for c in range(order.chunks)}
        assert set(found) == {(letter, *pair) for letter in "FBW" for pair in pairs}
        for pair in pairs:
            assert found["F", *pair] < found["B", *pair] <= found["W", *pair]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_nobody_waits_for_ever(case):
    order = order_of(*case)
    ones = [[1] * len(order.sequence(stage)) for stage in range(order.stages)]
    reference.simulate(order, ones)  # asserts it


@pytest.mark.parametrize("case", CASES, ids=name)
def test_activations_stay_within_the_bound(case):
    order = order_of(*case)
    p, m, v = order.stages, order.micro_batches, order.chunks
    held = [reference.in_flight(order, stage) for stage in range(p)]
    bound = {
        "gpipe": [m] * p,
        "1f1b": [min(p - s, m) for s in range(p)],
        "interleaved": [min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v) for s in range(p)],
        "zb-h1": [min(p, m)] * p,
        "dualpipe": [p + 1] * p,
    }[order.schedule]
    assert held == bound
    assert in_flight(order).tolist() == held


def test_zero_bubble_needs_no_more_than_1f1b_before_the_weights():
    # Released after the gradients of the inputs, as most of the activations are.
    for p, m in [(4, 8), (5, 17)]:
        split, whole = order_of("zb-h1", p, m), order_of("1f1b", p, m)
        for stage in range(p):
            assert reference.in_flight(split, stage, until="B") == reference.in_flight(whole, stage)


def test_dualpipe_holds_a_micro_batch_more_in_all():
    order = order_of("dualpipe", 8, 32)
    for stage in range(8):
        held = [0, 0]
        most = (0, 0)
        for operation in order.sequence(stage):
            for phase, _, chunk in reference.halves(operation):
                held[chunk] += phase == "F"
            most = max(most, tuple(held), key=sum)
            for phase, _, chunk in reference.halves(operation):
                held[chunk] -= phase in ("W", "FB")
        assert most == (8 - stage, stage + 1)


def test_parts_lie_in_circles_or_in_both_directions():
    assert order_of("interleaved", 4, 4, 2).part.tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert order_of("dualpipe", 4, 8).part.tolist() == [[0, 3], [1, 2], [2, 1], [3, 0]]
    assert order_of("dualpipe", 4, 8).parts == 4


def test_interleaved_begins_as_published():
    # SC 2021, figure 4: 4 devices, 8 micro-batches, 2 chunks.
    order = order_of("interleaved", 4, 8, 2)
    first = order.sequence(0)
    assert [(each.micro_batch, each.chunk) for each in first[:10]] == [
        *((i, 0) for i in range(4)),
        *((i, 1) for i in range(4)),
        (4, 0),
        (5, 0),
    ]
    assert [Kind(each.kind).name[0] for each in first[10:14]] == ["F", "B", "F", "B"]
    last = order.sequence(3)
    assert [(Kind(each.kind).name[0], each.micro_batch, each.chunk) for each in last[4:8]] == [
        ("F", 0, 1),
        ("B", 0, 1),
        ("F", 1, 1),
        ("B", 1, 1),
    ]


def test_larger_groups_take_what_is_left():
    # 10 micro-batches on 4 stages: a group of 6 and one of 4.
    order = order_of("interleaved", 4, 10, 2, group=6)
    forwards = [each for each in order.sequence(3) if each.kind == Kind.FORWARD]
    assert [each.micro_batch for each in forwards] == [*range(6), *range(6), *range(6, 10), *range(6, 10)]
    for stage in range(4):
        assert len(reference.positions(order, stage)) == 3 * 20
    assert in_flight(order).tolist() == [2 * (3 - s) + 6 + 1 for s in range(4)]


def test_dualpipe_is_symmetric():
    order = order_of("dualpipe", 6, 14)
    mirrored = order.kind[::-1]
    assert np.array_equal(order.kind, mirrored)
    assert np.array_equal(np.where(order.chunk >= 0, 1 - order.chunk, -1), order.chunk[::-1])


def test_one_chunk_leaves_nothing_to_interleave():
    assert order_of("interleaved", 4, 7, 1) is order_of("1f1b", 4, 7) or np.array_equal(
        order_of("interleaved", 4, 7, 1).kind, order_of("1f1b", 4, 7).kind
    )


@pytest.mark.parametrize(
    ("arguments", "group", "message"),
    [
        (("1F1B", 4, 8), None, r"schedule: expected one of gpipe, 1f1b, .*; got '1F1B'"),
        (("1f1b", 0, 8), None, "stages: expected a whole number of at least 1; got 0"),
        (("1f1b", 4, 0), None, "micro_batches: expected a whole number of at least 1; got 0"),
        (("1f1b", 4, 8.0), None, r"micro_batches: expected a whole number of at least 1; got 8\.0"),
        (("interleaved", 4, 8, True), None, "chunks: expected a whole number of at least 1; got True"),
        (
            ("1f1b", 4, 8, 2),
            None,
            "chunks: expected 1 per stage for 1f1b; got 2; `interleaved` takes any number",
        ),
        (("zb-h1", 4, 8, 2), None, "chunks: expected 1 per stage for zb-h1; got 2"),
        (("dualpipe", 4, 8, 1), None, "chunks: expected 2 per stage for dualpipe; got 1"),
        (("dualpipe", 3, 8), None, "stages: expected an even number for DualPipe; got 3"),
        (
            ("dualpipe", 4, 9),
            None,
            "micro_batches: expected an even number of at least 8 .* with 4 stages; got 9",
        ),
        (("dualpipe", 4, 6), None, "micro_batches: expected an even number of at least 8 .* got 6"),
        (
            ("interleaved", 4, 6, 2),
            None,
            "expected a multiple of 4 .* at least 4 left .* got 6, which leaves 2",
        ),
        (
            ("interleaved", 4, 8, 2),
            3,
            "group: expected at least one micro-batch for each of the 4 stages; got 3",
        ),
        (("1f1b", 4, 8), 4, "group: expected only with `interleaved`; got 4 with 1f1b"),
    ],
)
def test_what_cannot_be_is_refused(arguments, group, message):
    with pytest.raises(PipelineError, match=message) as caught:
        order_of(*arguments, group=group)
    assert isinstance(caught.value, InputError)


def test_schedules_are_known():
    assert set(SCHEDULES) == {case[0] for case in CASES} == set(get_args(Schedule))
