"""Levels: a topological order, as early as can be; circles of waiting are found."""

import dataclasses

import numpy as np
import pytest

from mc.pipeline import PipelineError, in_levels, levels_of
from tests.pipeline import reference
from tests.pipeline.cases import CASES, name


@pytest.mark.parametrize("case", CASES, ids=name)
def test_levels_are_the_times_of_operations_of_one_unit(case):
    levels = levels_of(*case)
    order = levels.order
    ones = [[1] * len(order.sequence(stage)) for stage in range(order.stages)]
    begins, _ = reference.simulate(order, ones)
    for stage, own in enumerate(begins):
        assert np.flatnonzero(levels.position[:, stage] >= 0).tolist() == own
        assert levels.position[own, stage].tolist() == list(range(len(own)))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_what_is_waited_for_is_still_kept(case):
    levels = levels_of(*case)
    age = np.arange(levels.count)[:, None] - levels.source
    waits = levels.source >= 0
    assert (age[waits] >= 1).all()
    assert levels.depth == max(1, age[waits].max(initial=1))
    assert ((levels.sender >= 0) == waits).all()
    # A message comes from a neighbour, in the circle of stages.
    stage = np.broadcast_to(np.arange(levels.order.stages), waits.shape)
    apart = (levels.sender - stage)[waits] % levels.order.stages
    assert np.isin(apart, [1, levels.order.stages - 1]).all()


def test_as_many_levels_as_the_bubble_says():
    for p, m in [(4, 8), (8, 8), (3, 5)]:
        assert levels_of("1f1b", p, m).count == 2 * (m + p - 1)
        assert levels_of("gpipe", p, m).count == 2 * (m + p - 1)
        assert levels_of("zb-h1", p, m + p).count == 3 * (m + p) + p - 1
    assert levels_of("interleaved", 4, 8, 2).count == 2 * (2 * 8 + 3)


def test_a_circle_of_waiting_is_refused():
    order = levels_of("1f1b", 2, 3).order
    # The last stage wants the last micro-batch first, which the first one sends after the first came back.
    swapped = np.where(np.arange(2)[:, None] == 1, 2 - order.micro_batch, order.micro_batch)
    message = "expected operations that can all run; got stage 0 waiting for ever with 4 of them left"
    with pytest.raises(PipelineError, match=message):
        in_levels(dataclasses.replace(order, micro_batch=swapped))
