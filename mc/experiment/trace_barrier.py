"""A step of ranks that compute and then exchange: its slowest rank, and what the others do meanwhile.

Which ranks there are beside the slowest is not drawn: where ranks are alike a step needs one draw. Given that the slowest
takes s, another rank takes less, by the law F of one rank: P(X <= x | X <= s) = F(x)/F(s). So the median and the fastest
of the others are *typical* ranks: the medians of those two order statistics,

    F(median) = F(s)/2,    F(fastest) = F(s)·(1 − 2^(−1/(n − 1))).

F mixes the persistent factors of the realisation, and takes what a node's or rack's ranks have in common as if each rank
had its own; what the whole job has in common is drawn again, and is the same for all.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from mc.config import ExperimentConfig
from mc.experiment.build import build
from mc.experiment.run import cell_of
from mc.experiment.trace_slices import COMMUNICATION, COMPUTE, WAIT, Slices
from mc.results import RunResult, Slice
from mc.step import Compute, Step, draw_classes, factors

# Halvings of an interval: beyond double precision.
_HALVINGS = 60
_SLOWEST, _MEDIAN, _FASTEST = 0, 1, 2


def barrier_slices(config: ExperimentConfig, result: RunResult, realisation: int, sample: int) -> Slices:
    """What happens in a step."""
    step = build(config).step

    def part(name: str) -> float:
        seconds = result.parts[name]
        return float(seconds if np.ndim(seconds) == 0 else seconds[realisation, sample])

    slowest = part("compute") + part("straggler_wait")
    times = {_SLOWEST: slowest}
    if config.ranks > 1:
        median, fastest = _others(config, result, step, realisation, sample, slowest)
        times |= {_MEDIAN: median, _FASTEST: fastest}
    names = {
        _SLOWEST: f"slowest of {config.ranks:,} ranks",
        _MEDIAN: "median rank (typical)",
        _FASTEST: "fastest rank (typical)",
    }
    found = Slices({track: names[track] for track in times})
    found.waited_for = f"the slowest rank, which computes {slowest * 1e3:.4g} ms"
    for track, seconds in times.items():
        mine = [found.add(Slice("compute", track, "compute", 0.0, seconds, COMPUTE))]
        found.add(Slice("waits for the slowest rank", track, "waits", seconds, slowest, WAIT))
        at = slowest
        for name, duration, about in _exchange(step, part):
            mine.append(Slice(name, track, "communication", at, at + duration, COMMUNICATION, about))
            found.add(mine[-1])
            at += duration
        if track == _SLOWEST:
            found.critical = [each for each in mine if each.end > each.start]
    return found


def _exchange(step: Step, part: Callable[[str], float]) -> list[tuple[str, float, dict[str, float]]]:
    """What the exchange is made of: name, seconds, and what else is known; adds up to the parts of the step."""
    phases = []
    for phase in step.phases:
        latency, transfer = float(phase.latency), float(phase.transfer)
        phases.append((phase.name, latency + transfer, {"latency_s": latency, "transfer_s": transfer}))
    return [*phases, ("congestion", part("congestion"), {})]


def _others(
    config: ExperimentConfig, result: RunResult, step: Step, realisation: int, sample: int, slowest: float
) -> tuple[float, float]:
    """What the median and the fastest rank compute."""
    key = jax.random.key(config.run.seed, impl="threefry2x32")
    chunk, size, place = cell_of(config, result.samples.shape, sample)
    prepared = step.prepared() if config.run.method == "exact" else step
    common = prepared.common_to_all(key, realisation, chunk, size=size, method=config.run.method)
    factor, delay = (float(each[place]) for each in common)
    own = (slowest - delay) / factor
    survival = _survival(step.compute, key, config.ranks, result.realisations, realisation)
    reached = 1.0 - float(survival(own))
    wanted = reached * 0.5, reached * -np.expm1(np.log(0.5) / (config.ranks - 1))
    median, fastest = (_quantile(survival, each, own) for each in wanted)
    return factor * median + delay, factor * fastest + delay


def _survival(
    compute: Compute, key: jax.Array, ranks: int, realisations: int, realisation: int
) -> Callable[[float], float]:
    """P(X > x) of one rank of a realisation, without what the job has in common."""
    law = compute.law_of_one()
    if not (compute.persistent or compute.kinds):
        return lambda x: float(np.exp(np.float64(law.log_survival(jnp.asarray(x)))))
    unit = 1 if compute.every_rank is not None else compute.unit
    classes = draw_classes(compute.persistent, ranks, key, realisations, unit=unit, kinds=compute.kinds)
    mine = jax.tree.map(lambda each: jnp.asarray(each[realisation]), classes)
    slow = np.asarray(factors(compute.persistent, mine), np.float64)
    share = np.asarray(mine.counts, np.float64)
    share = share / share.sum()
    return lambda x: float(share @ np.exp(np.asarray(law.log_survival(jnp.asarray(x / slow)), np.float64)))


def _quantile(survival: Callable[[float], float], probability: float, most: float) -> float:
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 1.0 - survival(middle) < probability:
            low = middle
        else:
            high = middle
    return high
