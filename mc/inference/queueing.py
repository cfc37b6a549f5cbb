"""How many requests there are, and how long they wait.

**Little's law** (J. Little, Operations Research 9, 1961): requests that arrive at a rate λ and stay W are λ·W at a time,
whatever the laws. A replica that decodes B requests at once, each in W(B), serves B/W(B) a second, and with a given rate
it has the B for which that is λ.

**Waiting for prefill.** Requests come at random (Poisson) and take S each; those of one place wait in a line, by Lindley's
recursion W' = max(0, W + S − A) (Proc. Cambridge Phil. Soc. 48, 1952).

**Waiting for a place.** Of k places, n in use answer μ_n requests a second. With Poisson arrivals and exponential stays that is a
birth and death chain, π_n ~ Π λ/μ_i, geometric beyond k: a request finds all places taken with P = Σ_{n≥k} π_n and then waits for
an exponential time of mean 1/(μ_k − λ). For μ_n = nμ that is Erlang's formula of delays (M/M/k; L. Kleinrock, *Queueing
Systems* 1, 1975, 3.5). Answers of one length vary less, so they wait for less: half as long in M/D/1.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def batch_for_rate(rate: float, throughput: Callable[[int], float], at_once: int, most: int) -> int | None:
    """The fewest requests, in multiples of `at_once`, with which a replica serves as many per second as arrive.

    Args:
        rate: requests per second.
        throughput: requests per second with so many at once; does not fall.
        at_once: the batch is a multiple of it.
        most: requests.

    Returns:
        None if `most` are too few.
    """
    low, high = 0, most // at_once
    if not high or throughput(high * at_once) < rate:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if throughput(middle * at_once) >= rate else (middle, high)
    return high * at_once


def place_wait(rate: float, answered: Floats) -> tuple[float, float]:
    """The chance that all places are taken, and the mean wait of a request that finds them so.

    Args:
        rate: of requests.
        answered: per second, with 1, 2, … k places in use; more than `rate` with all.
    """
    free = np.cumsum(np.log(rate) - np.log(answered))
    logs = np.concatenate([[0.0], free])
    weights = np.exp(logs - logs.max())
    # All from k on: geometric with the ratio of the last.
    taken = weights[-1] / (1 - rate / answered[-1])
    return float(taken / (weights[:-1].sum() + taken)), float(1 / (answered[-1] - rate))


def waits(service: Floats, gaps: Floats) -> Floats:
    """How long requests wait, one after the other on the last axis, the first one not at all.

    The recursion unrolled: the k-th waits for the largest of the sums of S − A up to it, that is the sum less its
    smallest value so far.
    """
    steps = np.cumsum(service[..., :-1] - gaps[..., 1:], axis=-1)
    lowest = np.minimum.accumulate(np.minimum(steps, 0.0), axis=-1)
    return np.concatenate([np.zeros_like(service[..., :1]), steps - lowest], axis=-1)
