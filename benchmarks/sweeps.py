"""Sweeps: cells without noise by the array against one evaluation at a time, and steps drawn against a loop over ranks in NumPy."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Finding, at_least, at_most
from mc.config import shipped
from mc.config.load_sweep import Sweep, load_sweep
from mc.sweep.batch import batches_of, evaluate
from mc.sweep.leaves import Group, groups_of
from mc.sweep.quiet import quiet
from mc.sweep.sweep import run_sweep

_GRID = """
extends: {base}
plan: {{algorithm: ring}}
sweep:
  samples: 0
  limit: 2000000
  grid:
    plan.ranks: {{powers of two: [8, 1024]}}
    model.exchange.size: {{log: [1 MB, 1 GB], points: {points}}}
    cluster.tiers.1.link.bandwidth: {{linear: [100 Gb/s, 800 Gb/s], points: {points}}}
    cluster.tiers.1.link.latency: {{linear: [1 us, 10 us], points: {points}}}
"""


def run(*, quick: bool) -> Iterator[Finding]:
    """Cells per second without noise, their ratio to single evaluations, and rank-steps per second with noise."""
    with tempfile.TemporaryDirectory() as folder:
        points = 15 if quick else 50
        sweep = _load(Path(folder), _GRID.format(base=shipped.quickstart().resolve(), points=points))
        begun = time.perf_counter()
        run_sweep(sweep, out=Path(folder) / "out")
        rate = len(sweep) / (time.perf_counter() - begun)
        yield at_least(
            "cells without noise, to Parquet", rate / 1e3, "k cells/s", 1e3 / 30, f"{len(sweep):,} cells"
        )

    cells = 20
    configs = {cell: sweep.experiment(cell * len(sweep) // cells) for cell in range(cells)}
    for group in groups_of(configs):
        quiet(Group(group.cells[:1], group.template, group.paths, group.values[:1]))
    begun = time.perf_counter()
    for cell, config in configs.items():
        quiet(groups_of({cell: config})[0])
    single = cells / (time.perf_counter() - begun)
    yield at_least(
        "the same over one at a time", rate / single, "x", 20, f"{single:,.0f} cells/s one at a time"
    )

    large = load_sweep("cluster-size", ["sweep.samples=20000"] if quick else ["sweep.samples=200000"])
    (batch,) = batches_of(large)
    begun = time.perf_counter()
    table = evaluate(large, batch)
    seconds = time.perf_counter() - begun
    drawn = float(table.column("ranks").to_numpy() @ table.column("samples").to_numpy())
    note = "cluster-size, compilation included"
    yield at_least("ranks x steps with noise", drawn / seconds / 1e9, "G/s", 1, note)
    loop = _numpy_loop(1 << 14, 50)
    yield at_least(
        "the same over a NumPy loop", drawn / seconds / loop, "x", 10, f"{loop / 1e6:,.0f} M/s in NumPy"
    )

    yield from _two_processes(quick=quick)
    yield from _whole_processes(quick=quick)


# Runs the command on one core and says how much memory it took, in kB.
_PROGRAM = """
import os, resource, sys
os.sched_setaffinity(0, {int(sys.argv.pop(1))})
from mc.cli.app import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
# Draws a shard of a sweep on one core once before the clock runs, so that nothing is left to compile, and once, when told,
# with Parquet; says how long each took by the clock and of the core.
_DRAWING = """
import json, os, sys, time
core, path, shard, count, out = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
from mc.config.load_sweep import load_sweep
from mc.sweep.batch import batches_of, evaluate
from mc.sweep.sweep import run_sweep, shard_of
sweep, shard = load_sweep(path), (int(shard), int(count))
def clock():
    return time.time(), time.process_time()
def since(begun):
    return [now - then for now, then in zip(clock(), begun)]
begun = clock()
for batch in shard_of(batches_of(sweep), shard)[:1]:
    evaluate(sweep, batch)
first = since(begun)
print("ready", flush=True)
sys.stdin.readline()
begun = clock()
cells = run_sweep(sweep, out=out, shard=shard).cells
print(json.dumps({"cells": cells, "first_s": first, "drawing_s": since(begun)}), flush=True)
"""
_NOISY = """
extends: {base}
sweep:
  samples: {samples}
  grid:
    cluster.noise.spread.sigma: {{linear: [1 %, 5 %], points: 16}}
    model.exchange.size: {{log: [1 MB, 1 GB], points: {points}}}
"""


def _two_processes(*, quick: bool) -> Iterator[Finding]:
    """What drawing two shards side by side brings, a core each; and how much of a short sweep is compiling."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder, "noisy.yaml")).write_text(
            _NOISY.format(
                base=shipped.quickstart().resolve(), samples=20_000 if quick else 200_000, points=16
            )
        )
        (one,) = _drawing(path, folder, 1, cores)
        two = _drawing(path, folder, 2, cores)
    assert one["cells"] == sum(each["cells"] for each in two)
    # Of the core's time: what the machine does besides does not count, but nor does waiting for memory.
    user = one["drawing_s"][1] / max(each["drawing_s"][1] for each in two)
    rate = one["drawing_s"][0] / max(each["drawing_s"][0] for each in two)
    compiling = one["first_s"][1] - one["drawing_s"][1] * 64 / one["cells"]
    note = (
        f"{one['cells']} cells in {one['drawing_s'][0]:.0f} s on one core, to Parquet; by CPU time {user:.2f} x; "
        f"before it each process compiles for {compiling:.0f} s of CPU time, not counted"
    )
    yield at_least("two processes over one, drawing", rate, "x", 1.7, note)


def _drawing(path: Path, folder: str, count: int, cores: list[int]) -> list[dict]:
    """Shards drawn at one time, each by a process on a core of its own: what each says."""
    programs = []
    for number in range(count):
        words = [str(cores[number]), str(path), str(number + 1), str(count)]
        words.append(str(Path(folder, f"{path.stem}-{number + 1}-{count}")))
        programs.append(
            subprocess.Popen(
                [sys.executable, "-c", _DRAWING, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for program in programs:
        assert program.stdout is not None
        if program.stdout.readline() != "ready\n":
            raise RuntimeError("expected a process that draws; it ended")
    # Told together, only when all are ready.
    return [json.loads(said) for said in _told(programs)]


def _told(programs: list[subprocess.Popen[str]]) -> list[str]:
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    return [program.communicate()[0] for program in programs]


def _whole_processes(*, quick: bool) -> Iterator[Finding]:
    """Cost of a cell and peak memory as sweeps grow."""
    with tempfile.TemporaryDirectory() as folder:
        cores = sorted(os.sched_getaffinity(0))
        costs, memory, points = [], 0.0, 0
        for points in (10, 22) if quick else (10, 22, 50):
            (path := Path(folder, f"{points}.yaml")).write_text(
                _GRID.format(base=shipped.quickstart().resolve(), points=points)
            )
            ((seconds, memory),) = _shards(path, folder, 1, cores)
            costs.append(seconds / (8 * points**3))
    growth = f"{8 * 10**3:,} cells against {8 * points**3:,}"
    yield at_least("cost of a cell, small sweep over large", costs[0] / costs[-1], "x", 1, growth)
    yield at_most("peak memory of a sweep", memory / 1e6, "GB", 2, f"{8 * points**3:,} cells, to Parquet")


def _shards(path: Path, folder: str, count: int, cores: list[int]) -> list[tuple[float, float]]:
    """Seconds of each of some processes that divide a sweep, and their peak memory in kB."""
    programs = []
    for number in range(count):
        words = ["sweep", str(path), "--shard", f"{number + 1}/{count}", "--json"]
        words += ["--out", str(Path(folder, f"{path.stem}-{number + 1}-{count}"))]
        core = str(cores[number % len(cores)])
        command = [sys.executable, "-c", _PROGRAM, core, *words]
        programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    found = []
    for program in programs:
        said, told = program.communicate()
        if program.returncode:
            raise RuntimeError(told)
        found.append((json.loads(said)["elapsed_s"], float(told.splitlines()[-1])))
    return found


def _numpy_loop(ranks: int, steps: int) -> float:
    """Ranks x steps per second of the obvious way: every rank of every step, and the largest."""
    generator = np.random.default_rng(0)
    begun = time.perf_counter()
    for _ in range(steps):
        generator.lognormal(0.0, 0.02, ranks).max()
    return ranks * steps / (time.perf_counter() - begun)


def _load(folder: Path, text: str) -> Sweep:
    (folder / "sweep.yaml").write_text(text)
    return load_sweep(folder / "sweep.yaml")
