"""What the slowest rank costs: all others stand still until it arrives.

The wait is the part of a step between the moment when an undisturbed rank would be done and the moment when
the last one is. Every rank of the job pays it in every step, so a job of n ranks loses n × (share of the
step) chip-hours per hour.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mc.estimate.mean import mean_estimate, ratio_estimate
from mc.estimate.samples import Estimate


@dataclass(frozen=True)
class SlowestRank:
    """The cost of waiting for the slowest rank.

    Attributes:
        wait: mean wait per step, in seconds.
        share: fraction of the mean step time.
        chip_hours_per_hour: chip-hours lost in each hour that the job runs.
    """

    wait: Estimate
    share: Estimate
    chip_hours_per_hour: Estimate


def slowest_rank_cost(
    samples: ArrayLike, waits: ArrayLike, ranks: int, confidence: float = 0.95
) -> SlowestRank:
    """Mean wait for the slowest rank, its share of the step, and the chip-hours that it costs.

    Args:
        samples: step times, shape (realisations, steps), in seconds.
        waits: time of each step that went into waiting for the slowest rank; the same shape, in seconds.
        ranks: number of ranks that wait.
        confidence: coverage of each interval, in (0, 1).
    """
    wait, _ = mean_estimate(waits, confidence)
    share = ratio_estimate(waits, samples, confidence)
    lost = Estimate(ranks * share.value, ranks * share.low, ranks * share.high)
    return SlowestRank(wait, share, lost)
