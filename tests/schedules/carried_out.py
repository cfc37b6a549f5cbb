"""What every rank must hold after a collective, straight from its definition, and a schedule held to it."""

import numpy as np

from mc.schedules import Schedule, execute

# Elements per chunk; more than one, so that a chunk that is taken apart shows.
WIDTH = 2
ROOT = 0
POISON = -(10**9)  # where a rank holds nothing at the start


def assert_right(schedule: Schedule) -> None:
    """Carried out on whole numbers, the result is exact on every rank that has one."""
    n = schedule.ranks
    rng = np.random.default_rng(n)
    if schedule.collective == "barrier":
        # Everybody has heard from everybody, in every chunk that a stage of a composition may have.
        there = np.tile(np.eye(n, dtype=int), schedule.chunks)
        np.testing.assert_array_equal(execute(schedule, there, np.maximum), 1)
        return
    # In an all-to-all the buffer is one block per rank; else it is the schedule's chunks.
    blocks = n if schedule.collective == "all-to-all" else schedule.chunks
    data = rng.integers(0, 1000, (n, blocks * WIDTH))
    every = np.ones(data.shape, bool)
    mine = every
    if schedule.owner is not None:
        np.testing.assert_array_equal(np.bincount(schedule.owner, minlength=n), schedule.chunks // n)
        mine = np.repeat(schedule.owner, WIDTH) == np.arange(n)[:, None]
    at_root = every & (np.arange(n) == ROOT)[:, None]
    match schedule.collective:
        case "all-reduce":
            wanted, where = data.sum(0), every
        case "reduce":
            wanted, where = data.sum(0), at_root
        case "broadcast":
            wanted, where = data[ROOT], every
        case "reduce-scatter":
            wanted, where = data.sum(0), mine
        case "all-gather" | "gather":
            wanted = np.where(mine, data, 0).sum(0)
            where = every if schedule.collective == "all-gather" else at_root
            data = np.where(mine, data, POISON)
        case "scatter":
            wanted, where = data[ROOT], mine
            data = np.where(at_root, data, POISON)
        case "all-to-all":
            wanted, where = data.reshape(n, n, WIDTH).swapaxes(0, 1).reshape(n, -1), every
        case "send-recv":
            wanted, where = np.roll(data, 1, axis=0), every
        case other:
            raise AssertionError(f"expected a known collective; got {other}")
    result = execute(schedule, data)
    np.testing.assert_array_equal(result[where], np.broadcast_to(wanted, data.shape)[where])
