"""A small run with known numbers, for the tests of the store and of the reports."""

import dataclasses
from datetime import UTC, datetime

import numpy as np

from mc.estimate import estimate, slowest_rank_cost, waterfall
from mc.results import Machine, RunResult


def example_result(realisations=4, steps=50, **changes) -> RunResult:
    rng = np.random.default_rng(20261202)
    shape = (realisations, steps)
    parts = {
        "compute": np.full(shape, 1e-4, np.float32),
        "straggler_wait": rng.exponential(2e-5, shape).astype(np.float32),
        "bandwidth": np.full(shape, 3e-5, np.float32),
        "latency_floor": np.full(shape, 2e-6, np.float32),
        "congestion": rng.exponential(1e-6, shape).astype(np.float32),
    }
    samples = np.sum(list(parts.values()), axis=0, dtype=np.float32)
    result = RunResult(
        name="example",
        description="Two tiers, exponential jitter.",
        cluster_name="Pod of 64",
        ranks=64,
        tiers=("node: 8 x chip, 450 GB/s each way, 1 us", "rail: 8 x node, 50 GB/s each way, 5 us"),
        samples=samples,
        parts=parts,
        estimates=estimate(samples),
        waterfall=waterfall(samples, parts),
        slowest_rank=slowest_rank_cost(samples, parts["straggler_wait"], ranks=64),
        ideal_step_time=1.2e-4,
        seed=7,
        method="exact",
        config_hash="0123456789abcdef",
        resolved_yaml="name: example\nrun:\n  seed: 7\n",
        command="tailstep run example.yaml --set 'run.seed=7'",
        machine=Machine("cpu", "cpu", 1, x64=False),
        started=datetime(2026, 12, 2, 12, 0, 0, 250000, tzinfo=UTC),
        ended=datetime(2026, 12, 2, 12, 0, 2, tzinfo=UTC),
        elapsed_s=1.75,
        sampling_s=0.5,
    )
    return dataclasses.replace(result, **changes)
