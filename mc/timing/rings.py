"""Rings that are too large to run to the end: the growth per round, measured and carried on.

A ring repeats one round. With random messages its time grows steadily, E T(r) = v·r + a·r^⅓ + …: the
correction is that of growing interfaces (M. Prähofer, H. Spohn, Phys. Rev. Lett. 84 (2000)), whose spread
grows as r^⅓ too, or as r^½ where one slow link sets the pace. v is known for exponential jitter alone, so it
is measured: all ranks are run for as many rounds as are affordable, v and a are read off the times at half
of them and at the end, and the rest of the rounds is extrapolated.

The relative error is estimated from the same run: from a quarter and half of the rounds the end is predicted
and compared with what was found there. Twice that, twice the error of the mean, and 0.15·r^(−⅔) for terms
beyond a·r^⅓ make the stated error; the tests hold full runs of up to 2,048 ranks against it.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, PRNGKeyArray
from numpy.typing import NDArray

from mc.delays import ParameterError
from mc.schedules import Schedule
from mc.timing.executor import completion
from mc.timing.links import Disturbance, Links
from mc.timing.program import OfPair, Program, program_of

FEWEST_ROUNDS = 64
# Of the next term of the expansion; from runs with exponential, lognormal and Pareto jitter.
_BEYOND = 0.15


class RingTimes(eqx.Module):
    """Completion times of a large ring.

    Attributes:
        times: of each trial, seconds.
        rounds: that the ring takes.
        rounds_run: that were run; the others are extrapolated.
        relative_error: of the mean, that extrapolation may be off by; 0 where all rounds were run.
    """

    times: NDArray[np.float64]
    rounds: int
    rounds_run: int
    relative_error: float


def ring_round(
    ranks: int,
    *,
    both_ways: bool = False,
    crossing: OfPair | None = None,
    hops: OfPair | None = None,
) -> Program:
    """One round of a ring in which every rank sends 1/n of the buffer to the next.

    With `both_ways` it is half of that to either side, on links of their own: a second ring, whose ranks have
    the numbers n … 2n−1.
    """
    rank = np.arange(ranks)
    ways = (1, -1) if both_ways else (1,)
    source = np.concatenate([place * ranks + rank for place in range(len(ways))])
    target = np.concatenate([place * ranks + (rank + way) % ranks for place, way in enumerate(ways)])
    everyone = ranks * len(ways)
    ring = Schedule(
        collective="all-gather",
        algorithm="ring",
        ranks=everyone,
        chunks=everyone,
        round=np.zeros(everyone),
        slot=np.zeros(everyone),
        source=source,
        target=target,
        first=source,
        count=np.ones(everyone),
    )

    def of_rank(pairs: OfPair | None) -> OfPair | None:
        return None if pairs is None else lambda one, other: pairs(one % ranks, other % ranks)

    return program_of(ring, crossing=of_rank(crossing), hops=of_rank(hops))


def repeated(program: Program, rounds: int) -> Program:
    """A program of one step, so many times."""
    if program.steps != 1:
        raise ParameterError(f"program: expected one step to repeat; got {program.steps}")
    return eqx.tree_at(
        lambda p: (p.pattern, p.opens_round, p.closes_round),
        program,
        (jnp.zeros(rounds, jnp.int32), jnp.ones(rounds, bool), jnp.ones(rounds, bool)),
    )


def ring_completion(
    round_: Program,
    rounds: int,
    links: Links,
    size: ArrayLike,
    key: PRNGKeyArray,
    samples: int,
    *,
    disturbance: Disturbance | None = None,
    most_updates: int,
) -> RingTimes:
    """When the slowest rank of a ring is done, in `samples` trials.

    Args:
        round_: from `ring_round`.
        rounds: that the ring takes.
        links: what messages meet.
        size: bytes.
        key: a threefry key.
        samples: how many trials.
        disturbance: link states, one for each trial.
        most_updates: ranks x rounds x samples that may be run; at least 64 rounds are.

    Returns:
        Times, and how far they are extrapolated.
    """
    affordable = max(FEWEST_ROUNDS, 4 * (most_updates // (7 * round_.nodes * samples)))

    def run(count: int) -> NDArray[np.float64]:
        program = repeated(round_, count)
        return np.asarray(completion(program, links, size, key, samples, disturbance=disturbance), np.float64)

    if affordable >= rounds:
        return RingTimes(run(rounds), rounds, rounds, 0.0)
    end = affordable - affordable % 4
    base = float(links.base)
    quarter, half, full = (run(count) - base for count in (end // 4, end // 2, end))
    mean = _carried_on(half.mean(), full.mean(), end, rounds)
    foreseen = _carried_on(quarter.mean(), half.mean(), end // 2, end)
    noise = full.std() / math.sqrt(samples) / full.mean()
    error = 2 * math.hypot(foreseen / full.mean() - 1, noise) + _BEYOND * end ** (-2 / 3)
    # Between the exponents of a free interface and of a pinned one.
    growth = np.log2(full.std() / half.std()) if half.std() > 0 else 0.5
    spread = (rounds / end) ** float(np.clip(growth, 1 / 3, 1 / 2))
    return RingTimes(base + mean + (full - full.mean()) * spread, rounds, end, float(error))


def _carried_on(half: float, full: float, end: int, rounds: int) -> float:
    """v·rounds + a·rounds^⅓ from the means at `end`/2 and `end`."""
    cubic = end ** (1 / 3)
    # full = v·end + a·end^⅓; half = v·end/2 + a·(end/2)^⅓.
    a = (2 * half - full) / (cubic * (2 ** (2 / 3) - 1))
    v = (full - a * cubic) / end
    return v * rounds + a * rounds ** (1 / 3)
