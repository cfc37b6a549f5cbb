"""One evaluation without noise: against the event loop, the closed forms, and what a steady pipeline must take."""

import importlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mc.pipeline import Transfer, bubble, bubble_fraction, by_kind, levels_of, makespan, makespan_of, order_of
from mc.pipeline.levels import first_forwards, last_gradients
from tests.pipeline import reference
from tests.pipeline.cases import CASES, EACH, GRID, name

WAYS = ("one by one", "level by level")


# The package's attribute of this name is the function.
MODULE = importlib.import_module("mc.pipeline.makespan")


def force(monkeypatch, way):
    monkeypatch.setattr(MODULE, "_OPERATION", 0.0 if way == WAYS[0] else 1e9)


def table_of(order, seed):
    """Random durations, as `by_kind` has them and for every operation."""
    rng = np.random.default_rng(seed)
    shape = (order.stages, order.chunks)
    table = by_kind(*shape, *(rng.uniform(0.5, 2.0, shape) for _ in range(4)))
    each = [
        [table[operation.kind, stage, operation.chunk] for operation in order.sequence(stage)]
        for stage in range(order.stages)
    ]
    return table, each


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_it_is_what_the_event_loop_finds(case, way, blocking, monkeypatch):
    force(monkeypatch, way)
    levels = levels_of(*case)
    order = levels.order
    table, each = table_of(order, 1)
    forward, backward, start = np.random.default_rng(2).uniform(0, 1, (3, order.stages))
    options = {"forward": forward, "backward": backward, "start": start, "blocking": blocking}
    begins, ends = reference.simulate(order, each, **options)
    found = makespan_of(levels, table, transfer=Transfer(forward, backward, blocking), start=start)
    assert found.end == pytest.approx([own[-1] for own in ends], rel=1e-12)
    assert found.makespan == found.end.max()
    assert found.busy == pytest.approx([sum(own) for own in each], rel=1e-12)
    first, last = first_forwards(order), last_gradients(order)
    for stage in range(order.stages):
        own = reference.positions(order, stage)
        for chunk in range(order.chunks):
            assert first[stage, chunk] == min(
                place for (letter, _, c), place in own.items() if letter == "F" and c == chunk
            )
            assert last[stage, chunk] == max(
                place for (letter, _, c), place in own.items() if letter == "W" and c == chunk
            )
            at = last[stage, chunk]
            assert found.first_start[stage, chunk] == pytest.approx(
                begins[stage][first[stage, chunk]], abs=1e-12
            )
            assert found.gradient_end[stage, chunk] == pytest.approx(ends[stage][at], rel=1e-12)
            assert found.gradient_duration[stage, chunk] == each[stage][at]


def idle(case, forward, inputs, weights, joint=None):
    """Exact idle time of each stage, by the event loop in fractions."""
    order = order_of(*case)
    durations = reference.by_kind(order, *(Fraction(each) for each in (forward, inputs, weights)), joint)
    whole = reference.makespan(order, durations)
    return {whole - sum(own) for own in durations}


def agree(case, forward, inputs, weights, joint=None):
    """The closed form, the event loop, and the recursion."""
    order = order_of(*case)
    times = {
        "forward": Fraction(forward),
        "backward_input": Fraction(inputs),
        "backward_weight": Fraction(weights),
    }
    closed = bubble(*case, **times, joint=joint)
    assert idle(case, forward, inputs, weights, joint) == {closed}
    share = 1 if order.bidirectional else order.chunks
    each = {key: float(value) / share for key, value in times.items()}
    found = makespan(*case, **each, joint=None if joint is None else float(joint))
    assert found.makespan - found.busy == pytest.approx(np.full(order.stages, float(closed)), abs=1e-9)


@pytest.mark.parametrize(("p", "m"), GRID)
def test_bubble_of_gpipe_and_1f1b(p, m):
    for schedule in ("gpipe", "1f1b"):
        agree((schedule, p, m), 3, 4, 2)
        assert bubble_fraction(schedule, p, m) == pytest.approx((p - 1) / (m + p - 1), rel=1e-12)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_bubble_of_interleaved(p, groups, v):
    m = p * groups
    agree(("interleaved", p, m, v), 3, 4, 2)
    assert bubble_fraction("interleaved", p, m, v) == pytest.approx((p - 1) / (v * m + p - 1), rel=1e-12)


@pytest.mark.parametrize(("p", "m"), [(p, m) for p, m in GRID if m >= p])
def test_bubble_of_zero_bubble(p, m):
    for times in [(1, 1, 1), (3, 4, 2), (1, 2, 3), (2, 1, 2), (5, 1, 1)]:
        agree(("zb-h1", p, m), *times)
    # Qi et al.: with equal thirds a third of 1F1B's.
    assert 3 * bubble("zb-h1", p, m) == bubble("1f1b", p, m)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (2, 6), (4, 8), (4, 14), (6, 12), (8, 16), (8, 20)])
def test_bubble_of_dualpipe(p, m):
    for forward, weights in [(1, 1), (3, 2), (3, 1)]:
        agree(("dualpipe", p, m), forward, forward, weights, joint=2 * forward + weights)


def test_overlap_makes_dualpipe_faster():
    # Per pair of a forward and a backward a saving of 20 %.
    case, times = ("dualpipe", 8, 32), {"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0}
    plain, overlapped = makespan(*case, **times), makespan(*case, **times, joint=2.4)
    assert overlapped.makespan < 0.85 * plain.makespan


def test_closed_form_of_zero_bubble_needs_enough_micro_batches():
    with pytest.raises(
        ValueError, match="micro_batches: expected at least 4 for the closed form of zb-h1; got 3"
    ):
        bubble("zb-h1", 4, 3)


def test_transfers_slow_a_steady_pipeline_down_even_if_hidden():
    # Stages s to t pass p − s and p − t micro-batches per turn: whatever the circle with the largest mean takes,
    # a step takes per micro-batch.
    p, q = 4, 12  # 12 is a multiple of all circles' lengths
    rng = np.random.default_rng(5)
    forward, inputs, weights = rng.uniform(1, 1.2, (3, p, 1))
    late = rng.uniform(0, 0.5, (2, p))
    work = (forward + inputs + weights)[:, 0]
    mean = max(
        (work[s : t + 1].sum() + late[:, s:t].sum()) / (t - s + 1) for s in range(p) for t in range(s, p)
    )

    def time(m):
        found = makespan(
            "1f1b",
            p,
            m,
            forward=forward,
            backward_input=inputs,
            backward_weight=weights,
            transfer=Transfer(*late),
        )
        return found.makespan

    assert (time(480 + q) - time(480)) / q == pytest.approx(mean, rel=1e-12)
    assert mean > work.max()


def test_gpipe_is_a_flow_shop():
    # Stages of constant speed: the first micro-batch through all, the others behind the slowest stage.
    rng = np.random.default_rng(6)
    forward, inputs, weights = rng.uniform(1, 2, (3, 5, 1))
    found = makespan("gpipe", 5, 9, forward=forward, backward_input=inputs, backward_weight=weights)
    back = inputs + weights
    sweep = forward.sum() + 8 * forward.max()
    assert found.makespan == pytest.approx(sweep + back.sum() + 8 * back.max(), rel=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from(EACH), st.integers(0, 10**6), st.integers(0, 4), st.data())
def test_longer_operations_never_shorten(case, seed, kind, data):
    levels = levels_of(*case)
    table, _ = table_of(levels.order, seed)
    stage = data.draw(st.integers(0, levels.order.stages - 1))
    chunk = data.draw(st.integers(0, levels.order.chunks - 1))
    longer = table.copy()
    longer[kind, stage, chunk] += 0.7
    before, after = makespan_of(levels, table), makespan_of(levels, longer)
    assert (after.end >= before.end).all()
    assert (after.gradient_end >= before.gradient_end).all()
    # Nothing is put off by more than all operations together have become longer.
    count = np.sum((levels.order.kind[stage] == kind) & (levels.order.chunk[stage] == chunk))
    assert after.makespan <= before.makespan + 0.7 * count + 1e-9


def test_later_starts_and_slower_messages_never_shorten():
    for case in EACH:
        levels = levels_of(*case)
        table, _ = table_of(levels.order, 3)
        base = makespan_of(levels, table).end
        later = makespan_of(levels, table, start=np.linspace(0, 1, levels.order.stages)).end
        hidden = makespan_of(levels, table, transfer=Transfer(0.3, 0.2)).end
        blocking = makespan_of(levels, table, transfer=Transfer(0.3, 0.2, blocking=True)).end
        assert (later >= base).all()
        assert (hidden >= base).all()
        assert (blocking >= hidden).all()
