"""A job that fails and restarts, event by event: an oracle that shares no formula with the package."""

import heapq
from collections import Counter
from collections.abc import Callable

import numpy as np


def run_job(
    rng: np.random.Generator,
    *,
    between: float,
    interval: float,
    write: float,
    restart: float,
    spares: int,
    away: Callable[[np.random.Generator], float],
    intervals: int,
) -> Counter:
    """Seconds spent on each thing until so many intervals are done and saved, and the number of failures.

    Args:
        rng: of all that is random.
        between: mean seconds between failures, while the job runs.
        interval: seconds of computing between checkpoints.
        write: seconds to write one.
        restart: seconds.
        spares: how many.
        away: draws how long a failed one is away.
        intervals: how many.
    """
    spent: Counter = Counter()
    now, absent = 0.0, []
    next_failure = rng.exponential(between)

    def fail() -> None:
        nonlocal now, next_failure
        spent["failures"] += 1
        while absent and absent[0] <= now:
            heapq.heappop(absent)
        heapq.heappush(absent, now + away(rng))
        if len(absent) > spares:
            back = heapq.heappop(absent)
            spent["waiting"] += back - now
            now = back
        next_failure = now + rng.exponential(between)

    def attempt(length: float) -> bool:
        """Pass time; whether nothing failed."""
        nonlocal now
        if next_failure >= now + length:
            now += length
            return True
        now = next_failure
        return False

    done = 0
    restarting = False
    while done < intervals:
        start = now
        if restarting:
            if attempt(restart):
                spent["restarting"] += restart
                restarting = False
            else:
                spent["restarting"] += now - start
                fail()
            continue
        if attempt(interval + write):
            spent["computing"] += interval
            spent["checkpointing"] += write
            done += 1
        else:
            spent["recomputing"] += now - start
            fail()
            restarting = True
    spent["all"] = now
    return spent
