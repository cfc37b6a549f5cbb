"""With congestion that grows with the cluster, more chips make the step slower.

100 ms of compute is divided over n chips, which then add up 10 MB by a ring at 100 GB/s. Its latency is zero,
so that nothing but congestion can bend the curve: without it the step is 100 ms/n + 2(n−1)/n·0.1 ms, and each
doubling helps. Now let each node of eight chips find its uplink busy in 1 % of the steps, and let a busy link
be 1 + log₂(n/8) times slower: one more flow to share it with for each doubling of the nodes. All wait for the
slowest of n/8 nodes, so the step grows by log₂(n/8)·transfer·(1 − 0.99^(n/8)) in the mean.
"""

import math

import numpy as np

from experiments.claims.claim import Claim, falls, mean_tolerance
from mc.config import ExperimentConfig
from mc.experiment import run

CHIPS_PER_NODE = 8
WORK = 0.1  # seconds on one chip
SIZES = tuple(2**k for k in range(4, 15))
# By the formula above: chips at the peak of the speed-up, the speed-up there, that of the largest cluster.
PEAK_CHIPS, PEAK_SPEED_UP, LAST_SPEED_UP = 256, 115.77, 41.56
QUIET_LAST_SPEED_UP = 485.22
_ROUNDING = 0.005


def experiment(chips: int, *, congested: bool, samples: int) -> ExperimentConfig:
    """The step on `chips` chips, 16 or more."""
    nodes = chips // CHIPS_PER_NODE
    link = {"bandwidth": "100 GB/s", "duplex": "each", "latency": "0 us"}
    fabric: dict[str, object] = {"name": "fabric", "link": link, "fan_out": nodes}
    if congested:
        busy = {"name": "busy", "probability": "1 %", "slowdown": 1 + math.log2(nodes)}
        idle = {"name": "idle", "probability": "99 %"}
        fabric["congestion"] = {"shared_by": "node", "states": [idle, busy]}
    return ExperimentConfig.model_validate(
        {
            "name": "congestion that grows",
            "cluster": {
                "name": f"{nodes} nodes",
                "chip": {"peak": {"bf16": "1 PFLOP/s"}},
                "tiers": [{"name": "node", "link": link, "fan_out": CHIPS_PER_NODE}, fabric],
            },
            "model": {
                "name": "a fixed amount of work",
                "compute": {"time": f"{WORK / chips!r} s"},
                "exchange": {"collective": "all-reduce", "size": "10 MB"},
            },
            "plan": {"ranks": "all", "algorithm": "ring"},
            "run": {"samples": samples},
        }
    )


def claims(samples: int) -> list[Claim]:
    """Where the speed-up peaks."""
    steps = [run(experiment(chips, congested=True, samples=samples)).samples for chips in SIZES]
    congested = np.asarray([WORK / step.mean() for step in steps])
    quiet = np.asarray(
        [WORK / run(experiment(chips, congested=False, samples=1)).samples.mean() for chips in SIZES]
    )
    peak = int(np.argmax(congested))
    at_peak, at_end = (
        float(congested[index] * mean_tolerance(steps[index]) / steps[index].mean()) for index in (peak, -1)
    )
    last = f"{SIZES[-1]:,} chips"
    return [
        Claim("congestion grows: chips at the peak of the speed-up", PEAK_CHIPS, SIZES[peak]),
        Claim("speed-up at the peak", PEAK_SPEED_UP, float(congested[peak]), _ROUNDING + at_peak),
        Claim(f"speed-up of {last}", LAST_SPEED_UP, float(congested[-1]), _ROUNDING + at_end),
        Claim("doublings before the peak that do not help", 0, falls(congested[: peak + 1])),
        Claim("doublings after the peak that help", 0, falls(-congested[peak:])),
        Claim("no congestion: doublings that do not help", 0, falls(quiet)),
        Claim(f"no congestion: speed-up of {last}", QUIET_LAST_SPEED_UP, float(quiet[-1]), _ROUNDING),
    ]
