"""The sweep as a whole: which batches are due, who evaluates them, and what has become of them."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import jax
import numpy as np
import pyarrow as pa

from mc.config.load_sweep import Sweep
from mc.document import key_text
from mc.errors import InputError
from mc.results.provenance import commit, software, without_home
from mc.sweep.batch import batches_of, evaluate
from mc.sweep.distributed import is_first, shared
from mc.sweep.store import FORMAT, KIND, Batch, Store
from mc.sweep.table import OK

Advance = Callable[[int], None]
Log = Callable[[str], None]


class Executor(Protocol):
    """Evaluates batches, here or elsewhere, in any order."""

    def __call__(
        self, sweep: Sweep, batches: Sequence[Batch], advance: Advance
    ) -> Iterator[tuple[Batch, pa.Table]]:
        """Yields each batch with its rows as it is done, and says how many cells more are."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What a run of a sweep comes to.

    Attributes:
        cells: that this run was about, those included that were there already.
        found: how many were there already.
        failed: how many failed.
        samples: steps drawn for all of them.
        elapsed_s: wall-clock time.
    """

    cells: int
    found: int
    failed: int
    samples: int
    elapsed_s: float


def here(
    sweep: Sweep, batches: Sequence[Batch], advance: Advance, log: Log = lambda text: None
) -> Iterator[tuple[Batch, pa.Table]]:
    """Evaluates batches in this process, one after the other, on all of its devices."""
    for batch in batches:
        yield batch, evaluate(sweep, batch, advance=advance, log=log)


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
            "processes": jax.process_count(),
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
    executor: Executor | None = None,
    command: str = "tailstep sweep",
    observe: Callable[[pa.Table], None] = lambda table: None,
    advance: Advance = lambda count: None,
    log: Log = lambda text: None,
) -> Outcome:
    """Evaluates the cells of a sweep. No more than a few batches are in memory at a time.

    Args:
        sweep: which; its cells have been checked.
        out: folder to keep them in, batch by batch; nowhere if left out.
        resume: whether to go on with what is there.
        shard: (i, n) for the i-th of n parts of the work.
        executor: who evaluates the batches; this process by default.
        command: that repeats the run, for the record.
        observe: is given the rows of each batch, also of those that were there; in any order.
        advance: told how many more cells are done.
        log: told what is compiled, and why.

    Raises:
        InputError: the folder may not or cannot be written to.
    """
    begun = time.perf_counter()
    due = shard_of(batches_of(sweep), shard)
    execute = executor or partial(here, log=log)
    totals = np.zeros(3, np.int64)

    def seen(table: pa.Table) -> None:
        statuses = table.column("status").to_numpy(zero_copy_only=False)
        drawn = int(table.column("samples").to_numpy().sum())
        totals[:] += np.array([table.num_rows, np.count_nonzero(statuses != OK), drawn])
        observe(table)

    found = 0
    if out is None:
        for _, table in execute(sweep, due, advance):
            seen(table)
    else:
        with _opened(sweep, out, resume, shard, command) as (store, done):
            for batch in due:
                if store is not None and batch in done:
                    seen(store.table([batch]))
            found = int(totals[0])
            advance(found)
            for batch, table in execute(sweep, [batch for batch in due if batch not in done], advance):
                if store is not None:
                    store.write(batch, table)
                seen(table)
            if store is not None:
                store.finish(ended=datetime.now(UTC).isoformat(timespec="seconds"))
    cells, failed, samples = (int(each) for each in totals)
    return Outcome(cells, found, failed, samples, time.perf_counter() - begun)


@contextlib.contextmanager
def _opened(
    sweep: Sweep,
    out: str | os.PathLike[str],
    resume: bool,  # noqa: FBT001
    shard: tuple[int, int],
    command: str,
) -> Iterator[tuple[Store | None, set[Batch]]]:
    """The folder and what is in it; without the folder in processes that do not write.

    Raises:
        InputError: in all processes, if the first one may not write there.
    """
    with contextlib.ExitStack() as held:
        store, said = None, None
        if is_first():
            try:
                store = Store(out, manifest_of(sweep, command))
                store.open(resume=resume)
                held.enter_context(store.locked("{}-of-{}".format(*shard)))
                said = set(store.done()) if resume else set()
            except InputError as error:
                said = error
        said = shared(said)
        if isinstance(said, InputError):
            raise said
        yield store, said or set()


def run_one(sweep: Sweep, cell: int) -> pa.Table:
    """One cell alone: the same row, to the last digit, as in a run of all."""
    (batch,) = [each for each in batches_of(sweep) if each.start <= cell < each.stop]
    return evaluate(sweep, batch, only=[cell])
