"""Writing a run to its folder and reading it back.

`write_run` and `read_run` are inverses: the record read is the result written, with the manifest beside it.
Everything is also readable without this package: `pyarrow.parquet.read_table("steps.parquet")`.
"""

import io
import json
import os
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mc.errors import InputError
from mc.results.folder import MANIFEST, STEPS, SUMMARY, commit_files, current, read_manifest
from mc.results.manifest import METADATA_KEY, dump, manifest_of
from mc.results.model import model_from_json
from mc.results.record import Machine, RunRecord, RunResult
from mc.results.serving import serving_from_json
from mc.results.tables import estimates_of, samples_of, steps_table, summary_table
from mc.results.training import training_from_json


def write_run(folder: str | os.PathLike[str], result: RunResult) -> dict[str, Path]:
    """Keeps `result` in `folder`: steps.parquet, summary.parquet and manifest.json, all or none.

    Args:
        folder: missing, empty, or a finished run with the same configuration hash, which is replaced as a
            whole.
        result: the run.

    Returns:
        The path of each file, by its name.

    Raises:
        InputError: if the folder may not or cannot be written to.
    """
    manifest = dump(manifest_of(result))
    contents = {
        STEPS: _parquet(steps_table(result), manifest),
        SUMMARY: _parquet(summary_table(result), manifest),
        MANIFEST: manifest,
    }
    return commit_files(folder, result.config_hash, contents)


def read_run(folder: str | os.PathLike[str]) -> RunRecord:
    """Reads a run folder.

    Raises:
        InputError: if there is no finished run in it, or its files are damaged or of different runs.
    """
    path = Path(folder)
    try:
        manifest = read_manifest(path)
        if manifest is None:
            raise InputError(
                f"{path}: expected a folder with a finished run; got no readable manifest.json in it"
            )
        steps, summary = (pq.read_table(current(path, name)) for name in (STEPS, SUMMARY))
        for name, table in ((STEPS, steps), (SUMMARY, summary)):
            if json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"null")) != manifest:
                raise InputError(
                    f"{path / name}: expected the same run as in {MANIFEST}; got a file of another run"
                )
        return RunRecord(_result(manifest, steps, summary), manifest)
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"{path}: expected a complete run folder; got: {error}") from error


def _parquet(table: pa.Table, manifest: bytes) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: manifest}), buffer, compression="zstd")
    return buffer.getvalue()


def _result(manifest: dict, steps: pa.Table, summary: pa.Table) -> RunResult:
    cluster, random, counts = manifest["cluster"], manifest["random"], manifest["samples"]
    device, time = manifest["device"], manifest["time"]
    estimates, waterfall, slowest, ideal = estimates_of(
        summary, counts["confidence"], counts["steps"], counts["realisations"]
    )
    samples, parts = samples_of(steps, counts["realisations"], [part.name for part in waterfall.parts])
    return RunResult(
        name=manifest["name"],
        description=manifest["description"],
        cluster_name=cluster["name"],
        ranks=cluster["ranks"],
        tiers=tuple(cluster["tiers"]),
        samples=samples,
        parts=parts,
        estimates=estimates,
        waterfall=waterfall,
        slowest_rank=slowest,
        ideal_step_time=ideal,
        seed=random["seed"],
        method=random["method"],
        config_hash=manifest["config_hash"],
        resolved_yaml=manifest["config"],
        command=manifest["command"],
        machine=Machine(
            device["backend"], device["kind"], device["count"], device["x64"], random["key_implementation"]
        ),
        started=datetime.fromisoformat(time["started"]),
        ended=datetime.fromisoformat(time["ended"]),
        elapsed_s=time["elapsed_s"],
        sampling_s=time["sampling_s"],
        training=training_from_json(manifest["training"]) if "training" in manifest else None,
        serving=serving_from_json(manifest["serving"]) if "serving" in manifest else None,
        model=model_from_json(manifest["model"]) if "model" in manifest else None,
    )
