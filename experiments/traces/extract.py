"""From ByteDance's traces of operations to the two small tables that `record` reads.

    python -m experiments.traces --extract FOLDER

`FOLDER` holds `bytedance_AR_ops.csv.gz` and `bytedance_ST_ops.csv.gz`: one line per operation of one rank of each tensor
group, made from `data/trace-*.parquet` of github.com/ByteDance-Seed/StragglerAnalysis at 8efcd7f (Apache-2.0).

An exchange ends for both sides at once and starts when the later side is ready, so it takes the last end less the last
start; what comes before that is waiting, which the replay has to find by itself. Between traced operations the host does
things that are not traced (it starts the first forward, and checks the gradients after the last backward): `host`.
"""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.traces.record import AFTER, OPERATIONS, SIZES, SOURCE, STEPS, UNIT

_COMPUTE = {"forward-compute": 0, "backward-compute": 1}


def extract(folder: Path) -> None:
    """Writes both tables."""
    operations, steps = [], []
    for trace in SIZES:
        found = _read(folder / f"bytedance_{trace}_ops.csv.gz", trace)
        operations += list(_operations(trace, *found))
        steps += list(_steps(trace, *found))
    text = io.StringIO()
    _write(text, ("trace", "step", "replica", "stage", "kind", "durations"), operations)
    # Without the time of writing, so that the same traces give the same file.
    with OPERATIONS.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.getvalue().encode())
    text = io.StringIO()
    columns = ("span", "gather", "before", *AFTER, "host", "replicas", "forward", "backward")
    _write(text, ("trace", "step", *columns), steps)
    STEPS.write_text(text.getvalue(), encoding="utf-8")


_Found = tuple[NDArray[np.int64], NDArray[np.float64], dict[str, NDArray[np.float64]]]


def _read(file: Path, trace: str) -> _Found:
    """Numbers of steps; start and end of compute [steps, replicas, stages, kinds, micro-batches, 2]; and of all else."""
    replicas, stages, micro_batches = SIZES[trace]
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    steps = sorted({int(row["step"]) for row in rows})
    place = {step: index for index, step in enumerate(steps)}
    compute = np.full((len(steps), replicas, stages, 2, micro_batches, 2), np.nan)
    others: dict[str, NDArray[np.float64]] = {}
    for row in rows:
        where = place[int(row["step"])], int(row["dp_rank"]), int(row["stage"])
        start, kind = float(row["start_ts"]), row["optype"]
        times = start, start + float(row["duration"])
        if kind in _COMPUTE:
            compute[(*where, _COMPUTE[kind], int(row["mb_id"]))] = times
        else:
            shape = (len(steps), replicas, stages, micro_batches, 2)
            others.setdefault(kind, np.full(shape, np.nan))[(*where, int(row["seq_id"]))] = times
    return np.array(steps), compute, others


def _operations(
    trace: str, steps: NDArray[np.int64], compute: NDArray[np.float64], _: object
) -> Iterator[tuple]:
    took = np.rint((compute[..., 1] - compute[..., 0]) / UNIT).astype(np.int64)
    for index in np.ndindex(*took.shape[:-1]):
        durations = " ".join(str(each) for each in took[index])
        yield trace, int(steps[index[0]]), *index[1:], durations


def _steps(
    trace: str, steps: NDArray[np.int64], compute: NDArray[np.float64], others: dict[str, NDArray[np.float64]]
) -> Iterator[tuple]:
    first = compute[:, :, 0, 0, 0, 0]
    ends = compute[..., 1].max(axis=(2, 3, 4))
    forward = _exchange(others["forward-send"][:, :, :-1], others["forward-recv"][:, :, 1:])
    backward = _exchange(others["backward-send"][:, :, 1:], others["backward-recv"][:, :, :-1])
    for index, step in enumerate(steps):
        gather = others["params-all-gather"][index]
        before = first[index].max() - np.nanmax(gather[..., 1])
        at, after, host = ends[index].max(), [], 0.0
        for name in AFTER:
            begun, ended = (float(np.nanmax(others[name][index][..., side])) for side in (0, 1))
            host += begun - at
            after.append(ended - begun)
            at = ended
        figures = (at, np.nanmax(gather[..., 1]), before, *after, host)
        lists = ((ends - first)[index], forward[index].ravel(), backward[index].ravel())
        joined = (" ".join(f"{each:.5f}" for each in values) for values in lists)
        yield trace, int(step), *(f"{figure:.5f}" for figure in figures), *joined


def _exchange(sent: NDArray[np.float64], received: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median over micro-batches, [steps, replicas, boundaries]."""
    both = np.stack([sent, received])
    return np.median(both[..., 1].min(axis=0) - both[..., 0].max(axis=0), axis=-1)


def _write(text: io.StringIO, heading: tuple[str, ...], rows: list[tuple]) -> None:
    text.write(f"# {SOURCE}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
