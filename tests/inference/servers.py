"""Servers for tests: an experiment of a few lines, and what is built of it."""

from dataclasses import replace
from typing import Any

from mc.config import ExperimentConfig
from mc.experiment.build_serving import server_of
from mc.inference import Server

# Everything that a chip reaches is its peak, and nothing takes time beside, but what a test says.
IDEAL: dict[str, Any] = {
    "matmul": {"bf16": 1.0, "fp8": 1.0},
    "half_area": 0.0,
    "half_depth": 0.0,
    "attention": 1.0,
    "memory": 1.0,
    "kernel": "0 s",
}
KERNELS: dict[str, Any] = {
    "start": "0 s",
    "inside": 1.0,
    "between": 1.0,
    "attention": 1.0,
    "scheduler": "0 s",
}
DENSE: dict[str, Any] = {
    "layers": 4,
    "hidden": 1024,
    "heads": 16,
    "kv_heads": 8,
    "head_dim": 64,
    "ffn": 4096,
    "vocab": 32000,
}
MIXTURE: dict[str, Any] = {**DENSE, "experts": {"count": 16, "top_k": 2, "ffn": 1024}}


def experiment(
    serving: dict[str, Any],
    shape: dict[str, Any] = DENSE,
    *,
    latency: str = "0 us",
    efficiency: dict[str, Any] | None = None,
    memory_size: str = "80 GB",
    noise: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
    tier: dict[str, Any] | None = None,
) -> ExperimentConfig:
    """A cluster of nodes of eight, an ideal chip, and a small model."""
    chip = {
        "peak": {"bf16": "1 PFLOP/s", "fp8": "2 PFLOP/s"},
        "memory_size": memory_size,
        "memory_bandwidth": "3 TB/s",
        "efficiency": {**IDEAL, **(efficiency or {})},
    }
    tiers = [
        {"name": name, "link": {"bandwidth": bandwidth, "duplex": "each", "latency": latency}, "fan_out": 8}
        for name, bandwidth in (("node", "400 GB/s"), ("cluster", "50 GB/s"))
    ]
    tiers[0] |= tier or {}
    found = {
        "name": "test",
        "cluster": {"name": "test", "chip": chip, "tiers": tiers, "noise": noise or {}},
        "model": {"name": "test", "transformer": shape},
        "serving": {"prompt": 1024, "output": 257, "kernels": KERNELS, **serving},
        "run": run or {},
    }
    return ExperimentConfig.model_validate(found)


def server(serving: dict[str, Any], shape: dict[str, Any] = DENSE, **options: Any) -> Server:
    """What is built of it."""
    return server_of(experiment(serving, shape, **options))


def without(formats: Server, **changes: Any) -> Server:
    """The same with other fields of its block."""
    return replace(formats, serving=formats.serving.model_copy(update=changes))
