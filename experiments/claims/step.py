"""A faster chip does not make the exchange faster.

A step of 100 us of compute and 50 us of exchange, as an experiment of the engine: a ring all-reduce of
1.65 MB over 11 ranks, which is 20 rounds of 1 us and 20/11 of 1.65 MB at 100 GB/s, 30 us. Only the chip's peak
changes.
"""

from experiments.claims.claim import Claim
from mc.config import ExperimentConfig
from mc.experiment import run

# Per factor on the chip's peak: step time in us.
STEP_TIME = {1: 150.0, 4: 75.0, 16: 56.25}
SPEED_UP = {4: 2.0, 16: 150 / 56.25}
# Of 32-bit samples.
_US = 1e-3


def experiment(factor: int) -> ExperimentConfig:
    """The step on a chip `factor` times as fast: 100 GFLOP at `factor` PFLOP/s."""
    return ExperimentConfig.model_validate(
        {
            "name": "faster chip",
            "cluster": {
                "name": "eleven chips",
                "chip": {"peak": {"bf16": f"{factor} PFLOP/s"}},
                "tiers": [
                    {
                        "name": "fabric",
                        "link": {"bandwidth": "100 GB/s", "duplex": "each", "latency": "1 us"},
                        "fan_out": 11,
                    }
                ],
            },
            "model": {
                "name": "100 us of compute",
                "compute": {"flop": "100 GFLOP", "format": "bf16", "efficiency": "100 %"},
                "exchange": {"collective": "all-reduce", "size": "1.65 MB"},
            },
            "plan": {"ranks": "all", "algorithm": "ring"},
            "run": {"samples": 1000},
        }
    )


def claims(samples: int) -> list[Claim]:
    """Step times and speed-ups."""
    del samples
    times = {factor: float(run(experiment(factor)).samples.mean()) * 1e6 for factor in STEP_TIME}
    found = [
        Claim(
            f"100 us compute + 50 us exchange, chip {factor}x as fast: step, us", expected, times[factor], _US
        )
        for factor, expected in STEP_TIME.items()
    ]
    return found + [
        Claim(f"chip {factor}x as fast: speed-up of the step", expected, times[1] / times[factor], 1e-4)
        for factor, expected in SPEED_UP.items()
    ]
