"""All-to-all with a matrix of bytes: every block arrives, and messages carry what the matrix says."""

import math

import numpy as np
import pytest

from mc.schedules import HIERARCHICAL, SCHEDULES, build, counts
from tests.schedules.carried_out import assert_right

NAMES = sorted(SCHEDULES["all-to-all"])


def uneven(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.integers(0, 1000, (n, n)) * rng.integers(0, 2, (n, n)).astype(float)


def in_buffers(matrix: np.ndarray) -> np.ndarray:
    return matrix * len(matrix) / matrix.sum()


@pytest.mark.parametrize("name", [*NAMES, HIERARCHICAL])
@pytest.mark.parametrize("units", [(3, 4), (2, 2, 3), (16,)])
def test_equal_entries_change_nothing(name, units):
    n = math.prod(units)
    plain = build("all-to-all", name, n, units=units)
    same = build("all-to-all", name, n, units=units, byte_matrix=np.full((n, n), 7.0))
    np.testing.assert_allclose(same.shares, plain.shares, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 8, 13])
@pytest.mark.parametrize("name", ["direct", "pairwise"])
def test_each_block_is_one_message(name, n):
    schedule = build("all-to-all", name, n, byte_matrix=uneven(n))
    assert_right(schedule)
    sizes = np.zeros((n, n))
    sizes[schedule.source, schedule.target] = schedule.shares
    wanted = in_buffers(uneven(n))
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(sizes, wanted, atol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 8, 13])
def test_bruck_carries_a_block_once_per_one_of_its_distance(n):
    found = counts(build("all-to-all", "bruck", n, byte_matrix=uneven(n)))
    i, j = np.indices((n, n))
    ones = np.vectorize(lambda d: int(d).bit_count())((j - i) % n)
    assert found.sent.sum() == pytest.approx(float((in_buffers(uneven(n)) * ones).sum()))
    # By brute force, where each block is on its way.
    sent = np.zeros(n)
    for source, target in np.ndindex(n, n):
        at, distance = source, (target - source) % n
        for bit in range(distance.bit_length()):
            if distance >> bit & 1:
                sent[at] += in_buffers(uneven(n))[source, target]
                at = (at + (1 << bit)) % n
    np.testing.assert_allclose(found.sent, sent, atol=1e-12)


def test_tier_by_tier_a_block_travels_once_per_digit_that_differs():
    units, n = (3, 4), 12
    schedule = build("all-to-all", HIERARCHICAL, n, units=units, byte_matrix=uneven(n))
    i, j = np.indices((n, n))
    sizes = in_buffers(uneven(n))
    inside, across = i % 3 != j % 3, i // 3 != j // 3
    found = counts(schedule)
    assert found.sent.sum() == pytest.approx(float((sizes * inside).sum() + (sizes * across).sum()))
    # Across, a rank sends what its unit has for the ranks of its own place in the others.
    second = schedule.round == 1
    sent = np.bincount(schedule.source[second], schedule.shares[second], n)
    wanted = [
        sum(
            sizes[s, t]
            for s, t in np.ndindex(n, n)
            if s // 3 == r // 3 and t % 3 == r % 3 and t // 3 != r // 3
        )
        for r in range(n)
    ]
    np.testing.assert_allclose(sent, wanted, atol=1e-12)


def test_nothing_to_send_is_nothing_sent():
    schedule = build("all-to-all", "direct", 3, byte_matrix=np.zeros((3, 3)))
    assert schedule.rows == 6
    np.testing.assert_array_equal(schedule.shares, 0.0)


NAN = [[0.0, float("nan")], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("collective", "matrix", "message"),
    [
        ("all-to-all", np.ones((3, 3)), "byte_matrix: expected shape [2, 2]"),
        ("all-to-all", np.ones(2), "byte_matrix: expected shape [2, 2]"),
        ("all-to-all", [[0.0, -1.0], [1.0, 0.0]], "expected numbers >= 0; got -1.0 from rank 0 to rank 1"),
        ("all-to-all", NAN, "expected finite numbers; got nan from rank 0 to rank 1"),
        ("all-to-all", [[0.0, 1.0], [float("inf"), 0.0]], "expected finite numbers; got inf from rank 1 to"),
        ("all-to-all", [["many", 1.0], [2.0, 3.0]], "byte_matrix: expected numbers; got"),
        ("all-to-all", [[1.0], [2.0, 3.0]], "byte_matrix: expected numbers; got"),
        ("all-reduce", np.ones((2, 2)), "byte_matrix: expected none for all-reduce"),
    ],
)
def test_matrices_that_do_not_do(collective, matrix, message):
    name = "direct" if collective == "all-to-all" else "ring"
    with pytest.raises(ValueError, match="byte_matrix") as caught:
        build(collective, name, 2, byte_matrix=matrix)
    assert message in str(caught.value)
