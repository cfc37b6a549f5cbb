"""The plain data of a finished run: the engine hands it over, the report shows it, the store keeps it.

No JAX arrays and no modules: NumPy, strings and numbers, so that a stored run can be read and shown where JAX
is not installed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.estimate import Estimates, SlowestRank, Waterfall
from mc.results.model import ModelIntervals
from mc.results.serving import ServingSummary
from mc.results.training import TrainingSummary


@dataclass(frozen=True)
class Machine:
    """What the samples were drawn on, as far as it may change them.

    Attributes:
        backend: JAX's platform: `cpu`, `gpu` or `tpu`.
        device_kind: the device's own name for its kind.
        device_count: number of devices.
        x64: whether 64-bit types were enabled.
        key_implementation: the generator behind the random keys.
    """

    backend: str
    device_kind: str
    device_count: int
    x64: bool
    key_implementation: str = "threefry2x32"


@dataclass(frozen=True)
class RunResult:
    """One run. Times are in seconds.

    Attributes:
        name: the experiment's name.
        description: the experiment's own words about itself; may be empty.
        cluster_name: name of the cluster.
        ranks: number of ranks that take part.
        tiers: one line of text for each tier, innermost first.
        samples: step times, shape (realisations, steps).
        parts: part of the step to its time in each sampled step, each of the samples' shape or a scalar.
        estimates: mean and quantiles of `samples`.
        waterfall: the mean step as a sum of the means of `parts`.
        slowest_rank: what waiting for the slowest rank costs.
        ideal_step_time: mean step time on an ideal network: no latency, no transfer time, no congestion.
        seed: seed of the root key.
        method: how the slowest rank was drawn: `exact`, `direct` or `grid`.
        config_hash: hash of the resolved configuration.
        resolved_yaml: the configuration with every default spelled out.
        command: the command line that repeats the run.
        machine: what the samples were drawn on.
        started: when the run began, with a time zone.
        ended: when it ended, with a time zone.
        elapsed_s: wall-clock time of the whole run.
        sampling_s: wall-clock time of the sampling alone.
        training: throughput, utilisation and memory, where a transformer is trained.
        serving: latencies, throughput and memory, where it serves.
        model: intervals from what a calibration left unknown; None where all is known.
    """

    name: str
    description: str
    cluster_name: str
    ranks: int
    tiers: tuple[str, ...]
    samples: NDArray[np.floating]
    parts: Mapping[str, NDArray[np.floating]]
    estimates: Estimates
    waterfall: Waterfall
    slowest_rank: SlowestRank
    ideal_step_time: float
    seed: int
    method: str
    config_hash: str
    resolved_yaml: str
    command: str
    machine: Machine
    started: datetime
    ended: datetime
    elapsed_s: float
    sampling_s: float
    training: TrainingSummary | None = None
    serving: ServingSummary | None = None
    model: ModelIntervals | None = None

    @property
    def realisations(self) -> int:
        """Number of independent realisations of the cluster."""
        return int(self.samples.shape[0])

    @property
    def samples_per_s(self) -> float:
        """Sampled steps per second of sampling; 0 where no time was measured."""
        return float(self.samples.size / self.sampling_s) if self.sampling_s > 0 else 0.0

    @property
    def slowdown(self) -> float:
        """Mean step time over the mean on an ideal network."""
        return self.estimates.mean.value / self.ideal_step_time if self.ideal_step_time > 0 else float("inf")


@dataclass(frozen=True)
class RunRecord:
    """A run as it was kept: the result, and the manifest that says how to get it again."""

    result: RunResult
    manifest: Mapping[str, Any]
