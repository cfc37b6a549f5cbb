"""From the prompt to the answer: whole processes, with nothing warm but the file cache."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.measure import Finding, at_most


def run(*, quick: bool) -> Iterator[Finding]:
    """Wall-clock time of `tailstep --help` and of `tailstep run` on the embedded default."""
    repeats = 3 if quick else 5
    help_time = statistics.median(_process("--help") for _ in range(repeats))
    yield at_most("tailstep --help", help_time, "s", 0.5, f"median of {repeats} processes")
    run_time = statistics.median(_process("run", "--json") for _ in range(1 if quick else 3))
    yield at_most(
        "tailstep run, cold start to result", run_time, "s", 15, "imports, compilation and 20,000 steps"
    )


def _process(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "mc", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start
