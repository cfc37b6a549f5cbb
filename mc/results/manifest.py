"""The manifest: everything that is needed to understand a run folder and to run it again.

A copy travels in the key-value metadata of each Parquet file, so a file that got separated from its folder
still explains itself.
"""

import json
from datetime import UTC, datetime
from typing import Any

from mc.results.model import model_to_json
from mc.results.provenance import commit, software, without_home
from mc.results.record import RunResult
from mc.results.serving import serving_to_json
from mc.results.training import training_to_json

KIND = "tailstep run"
FORMAT = 1
METADATA_KEY = b"tailstep_manifest"


def manifest_of(result: RunResult) -> dict[str, Any]:
    """The manifest of `result` as it goes to JSON."""
    machine = result.machine
    found = {
        "kind": KIND,
        "format": FORMAT,
        "name": result.name,
        "description": result.description,
        "command": result.command,
        "config_hash": result.config_hash,
        "config": result.resolved_yaml,
        "cluster": {"name": result.cluster_name, "ranks": result.ranks, "tiers": list(result.tiers)},
        "random": {
            "seed": result.seed,
            "key_implementation": machine.key_implementation,
            "method": result.method,
        },
        "samples": {
            "steps": int(result.samples.size),
            "realisations": result.realisations,
            "confidence": result.estimates.confidence,
        },
        "software": software(),
        "checkout": commit(),
        "device": {
            "backend": machine.backend,
            "kind": machine.device_kind,
            "count": machine.device_count,
            "x64": machine.x64,
        },
        "time": {
            "started": _utc(result.started),
            "ended": _utc(result.ended),
            "elapsed_s": result.elapsed_s,
            "sampling_s": result.sampling_s,
        },
    }
    if result.training is not None:
        found["training"] = training_to_json(result.training)
    if result.serving is not None:
        found["serving"] = serving_to_json(result.serving)
    if result.model is not None:
        found["model"] = model_to_json(result.model)
    return without_home(found)


def dump(manifest: dict[str, Any]) -> bytes:
    """The manifest as JSON text, ending with a newline."""
    return (json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def is_manifest(value: Any) -> bool:
    """Whether a JSON value is a manifest that this version can read."""
    return isinstance(value, dict) and value.get("kind") == KIND and value.get("format") == FORMAT


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
