"""Steps of ranks that share noise, drawn by NumPy and fitted by the score of draws: how often do intervals hold the truth?

    python -m experiments.calibration.shared_noise [--replications 24]

Every rank takes 20 ms and an exponential of its own (1 ms in the mean); the step ends with the slowest and is late by one
exponential that all share (2 ms); a ring's latencies come on top. 300 steps on 8 ranks, 200 on 32. A replication takes 20 to 60 s.
"""

import argparse

import numpy as np

from mc.calibration import StepRun
from mc.calibration.step_crps import fit_drawn
from mc.calibration.step_draws import drawn_parameters
from mc.config import ExperimentConfig

COMPUTE, OWN, SHARED, LATENCY = 20e-3, 1e-3, 2e-3, 100e-6
STEPS = {8: 300, 32: 200}
# What the fit begins with: guesses.
EXPERIMENT = ExperimentConfig.model_validate(
    {
        "name": "shared noise",
        "cluster": {
            "name": "flat",
            "chip": {"peak": {}},
            "tiers": [
                {
                    "name": "net",
                    "fan_out": 64,
                    "link": {"bandwidth": "10 GB/s", "duplex": "each", "latency": "100 us"},
                }
            ],
            "noise": {
                "jitter": {"family": "exponential", "mean": "2 ms"},
                "transient": [{"scope": "all", "jitter": {"family": "exponential", "mean": "5 ms"}}],
            },
        },
        "model": {
            "name": "m",
            "compute": {"time": "30 ms"},
            "exchange": {"collective": "all-reduce", "size": "1 B"},
        },
        "plan": {"ranks": 8, "algorithm": "ring"},
    }
)


def steps(ranks: int, count: int, seed: int) -> np.ndarray:
    """Step times, every rank drawn."""
    generator = np.random.default_rng(seed)
    slowest = generator.exponential(OWN, size=(count, ranks)).max(axis=1)
    return COMPUTE + slowest + generator.exponential(SHARED, size=count) + 2 * (ranks - 1) * LATENCY


def holds(replication: int) -> list[bool]:
    """Whether 90 % intervals hold compute time, own and shared noise."""
    runs = [
        StepRun(ranks, steps(ranks, count, 100 + 2 * replication + place), f"{ranks} ranks")
        for place, (ranks, count) in enumerate(STEPS.items())
    ]
    fit = fit_drawn(EXPERIMENT, runs, drawn_parameters(EXPERIMENT), starts=2)
    truths = (COMPUTE, OWN, SHARED)
    return [bool(low <= truth <= high) for (low, _, high), truth in zip(fit.interval(), truths, strict=True)]


def main() -> None:
    """Prints how many intervals hold the truth."""
    parser = argparse.ArgumentParser(
        description="How often intervals of fits by the score of draws hold the truth."
    )
    parser.add_argument("--replications", type=int, default=24)
    asked = parser.parse_args()
    found = np.array([holds(each) for each in range(asked.replications)])
    for name, own in zip(("compute time", "own noise", "shared noise"), found.T, strict=True):
        print(f"{name}: {own.sum()} of {len(own)} intervals of 90 % hold the truth")


if __name__ == "__main__":
    main()
