"""Algorithms under noise: the one with the best mean need not have the best p99.

An algorithm adds up delays in its own way. A ring takes thousands of small ones one after the other and is slow
but steady; a tree takes the slowest of many, few times, and inherits the tail. Which is best depends on
what is asked for, so `auto` may be asked for the floor (links idle), the mean, or the p99.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from mc.collectives import Row, Stage, plans
from mc.collectives.candidates import ALL
from mc.collectives.stages import AUTO
from mc.config.names import Objective
from mc.exchange.sample import MOST_UPDATES, SampledTimes, sample_times
from mc.fabric import Cluster, LinkNoise

# Of a choice that nobody looks at: p99 to a few per cent of the spread.
CHOICE_SAMPLES = 1000


@dataclass(frozen=True)
class Way:
    """One way to carry out a collective, sampled.

    Attributes:
        row: what the closed form says of it.
        stages: how it goes.
        sampled: its times under noise.
    """

    row: Row
    stages: tuple[Stage, ...]
    sampled: SampledTimes

    def score(self, objective: Objective) -> float:
        """Seconds to be minimised."""
        if objective == "floor":
            return self.sampled.floor
        times = self.sampled.times
        return float(times.mean() if objective == "mean" else np.quantile(times, 0.99))


def compare(
    cluster: Cluster,
    collective: str,
    ranks: int,
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    *,
    algorithm: str = ALL,
    protocol: str = AUTO,
    objective: Objective = "mean",
    samples: int = CHOICE_SAMPLES,
    most_updates: int = MOST_UPDATES,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Way]:
    """Sample every way to carry out a collective, best first.

    Args:
        cluster: where it runs.
        collective: such as `all-reduce`.
        ranks: consecutive ranks in the group.
        size: bytes, of the whole buffer as in nccl-tests.
        noise: of the links, with its tables (`LinkNoise.prepared`).
        key: a threefry key; all ways share it.
        algorithm: a name, `all`, or `auto` for the best.
        protocol: a name, `all` for each with every algorithm, `auto` for the one with the lowest floor, or
            `none`.
        objective: what `auto` and the order go by.
        samples: trials of each.
        most_updates: see `sample_times`.
        advance: told when another one is done.

    Raises:
        InputError: as `stages` does.
    """
    asked = ALL if algorithm == AUTO else algorithm
    found = []
    for row, stages in plans(cluster, collective, ranks, size, asked, protocol=protocol):
        sampled = sample_times(cluster, stages, size, noise, key, samples, most_updates=most_updates)
        found.append(Way(row, stages, sampled))
        advance(1)
    found.sort(key=lambda way: way.score(objective))
    return found[:1] if algorithm == AUTO else found


def choose(
    cluster: Cluster,
    collective: str,
    ranks: int,
    size: float,
    noise: LinkNoise,
    key: PRNGKeyArray,
    *,
    objective: Objective,
    protocol: str = AUTO,
) -> Sequence[Stage]:
    """How to carry out a collective with the least mean or p99. Arguments as for `compare`."""
    (best,) = compare(
        cluster,
        collective,
        ranks,
        size,
        noise,
        key,
        algorithm=AUTO,
        protocol=protocol,
        objective=objective,
    )
    return best.stages
