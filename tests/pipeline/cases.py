"""The pipelines that the tests go through: every schedule, with numbers at the edge of what it can have."""

import itertools

import numpy as np

CASES = [
    *(("gpipe", p, m, None) for p, m in [(1, 1), (1, 3), (2, 1), (4, 2), (3, 5), (4, 8)]),
    *(("1f1b", p, m, None) for p, m in [(1, 1), (1, 3), (2, 1), (4, 2), (3, 5), (4, 8), (5, 17)]),
    *(
        ("interleaved", p, m, v)
        for p, m, v in [(1, 3, 2), (2, 2, 2), (2, 6, 3), (3, 9, 2), (4, 4, 4), (4, 8, 1)]
    ),
    *(("zb-h1", p, m, None) for p, m in [(1, 1), (1, 3), (2, 1), (4, 2), (3, 5), (4, 8), (5, 17)]),
    *(("dualpipe", p, m, None) for p, m in [(2, 4), (2, 10), (4, 8), (4, 12), (6, 14), (8, 20)]),
]
# One of each, not too small.
EACH = [
    ("gpipe", 4, 6, None),
    ("1f1b", 4, 9, None),
    ("interleaved", 3, 6, 3),
    ("zb-h1", 4, 9, None),
    ("dualpipe", 4, 10, None),
]


def name(case):
    return "-".join(str(each) for each in case if each is not None)


def random_durations(order, seed=0, batch=None):
    """[stages, operations(, batch)] in float32, with a few that are much longer."""
    rng = np.random.default_rng(seed)
    shape = (order.stages, order.operations, *(() if batch is None else (batch,)))
    return (rng.exponential(1.0, shape) ** 1.5 + 0.1).astype(np.float32)


def random_times(seed, *shape):
    return np.random.default_rng(seed).uniform(0.0, 0.6, shape).astype(np.float32)


GRID = list(itertools.product([1, 2, 3, 4, 8], [1, 2, 3, 4, 7, 8, 16, 24]))
