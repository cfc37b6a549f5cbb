"""The sweep as a whole: which batches are due, who evaluates them, and what has become of them."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import jax
import pyarrow as pa

from mc.config.load_sweep import Sweep
from mc.document import key_text
from mc.results.provenance import commit, software, without_home
from mc.sweep.batch import batches_of, evaluate
from mc.sweep.store import FORMAT, KIND, Batch, Store
from mc.sweep.table import Row, table_of

Advance = Callable[[int], None]


class Executor(Protocol):
    """Evaluates batches, here or elsewhere, in any order."""

    def __call__(
        self, sweep: Sweep, batches: Sequence[Batch], advance: Advance
    ) -> Iterator[tuple[Batch, list[Row]]]:
        """Yields each batch with its rows as it is done, and says how many cells more are."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What a run of a sweep has to show.

    Attributes:
        table: rows of the cells that this run was about, those included that were there already.
        failed: how many of them failed.
        found: how many were there already.
        elapsed_s: wall-clock time.
    """

    table: pa.Table
    failed: int
    found: int
    elapsed_s: float


def here(sweep: Sweep, batches: Sequence[Batch], advance: Advance) -> Iterator[tuple[Batch, list[Row]]]:
    """Evaluates batches in this process, one after the other, on all of its devices."""
    for batch in batches:
        yield batch, evaluate(sweep, batch, advance=advance)


def shard_of(batches: Sequence[Batch], shard: tuple[int, int]) -> list[Batch]:
    """The batches of shard i of n, from 1: every n-th."""
    number, count = shard
    return list(batches[number - 1 :: count])


def sweep_hash(sweep: Sweep) -> str:
    """16 hexadecimal digits that identify what a sweep asks for."""
    axes = [
        [[key_text(path) for path in axis.paths], [[node.plain() for node in point] for point in axis.points]]
        for axis in sweep.axes
    ]
    idle = {"limit", "grid", "zip", "cells", "random", "sobol"}
    asked = sweep.config.model_dump(mode="json", exclude=idle)
    content = {"axes": axes, "sweep": asked, "experiment": sweep.document.root.plain()}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def manifest_of(sweep: Sweep, command: str) -> dict[str, Any]:
    """Everything that is needed to understand a sweep's folder and to run it again."""
    plain = sweep.document.root.plain()
    device = jax.devices()[0]
    found = {
        "kind": KIND,
        "format": FORMAT,
        "name": str(plain.get("name", "")),
        "sweep_hash": sweep_hash(sweep),
        "command": command,
        "cells": len(sweep),
        "axes": {"; ".join(key_text(path) for path in axis.paths): len(axis.points) for axis in sweep.axes},
        "sweep": sweep.config.model_dump(mode="json", by_alias=True, exclude_none=True),
        "experiment": plain,
        "random": {"key_implementation": "threefry2x32"},
        "software": software(),
        "checkout": commit(),
        "device": {
            "backend": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
            "x64": bool(jax.config.read("jax_enable_x64")),
        },
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return without_home(found)


def run_sweep(
    sweep: Sweep,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    shard: tuple[int, int] = (1, 1),
    executor: Executor = here,
    command: str = "tailstep sweep",
    advance: Advance = lambda count: None,
) -> Outcome:
    """Evaluates the cells of a sweep.

    Args:
        sweep: which; its cells have been checked.
        out: folder to keep them in, batch by batch; nowhere if left out.
        resume: whether to go on with what is there.
        shard: (i, n) for the i-th of n parts of the work.
        executor: who evaluates the batches.
        command: that repeats the run, for the record.
        advance: told how many more cells are done.

    Raises:
        InputError: the folder may not or cannot be written to.
    """
    begun = time.perf_counter()
    due = shard_of(batches_of(sweep), shard)
    if out is None:
        tables = {batch: table_of(sweep, rows) for batch, rows in executor(sweep, due, advance)}
        table = pa.concat_tables([tables[batch] for batch in due]) if due else table_of(sweep, [])
        return _outcome(table, 0, begun)
    store = Store(out, manifest_of(sweep, command))
    store.open(resume=resume)
    with store.locked("{}-of-{}".format(*shard)):
        done = store.done() if resume else {}
        there = [batch for batch in due if batch in done]
        found = sum(batch.stop - batch.start for batch in there)
        advance(found)
        for batch, rows in executor(sweep, [batch for batch in due if batch not in done], advance):
            store.write(batch, table_of(sweep, rows))
        table = store.table(due) if due else table_of(sweep, [])
        store.finish(ended=datetime.now(UTC).isoformat(timespec="seconds"))
    return _outcome(table, found, begun)


def run_one(sweep: Sweep, cell: int) -> pa.Table:
    """One cell alone: the same row, to the last digit, as in a run of all."""
    (batch,) = [each for each in batches_of(sweep) if each.start <= cell < each.stop]
    return table_of(sweep, evaluate(sweep, batch, only=[cell]))


def _outcome(table: pa.Table, found: int, begun: float) -> Outcome:
    failed = table.num_rows - table.column("status").to_pylist().count("ok")
    return Outcome(table, failed, found, time.perf_counter() - begun)
