"""More devices in one process: what a second one brings, and what it costs in compilation and memory.

A machine without accelerators has virtual devices (`jax_num_cpu_devices`): each draws in a thread of its
own, on the same cores and through the same memory. So this shows what sharing out brings where one device leaves cores
idle, and what it costs; it does not show what a second accelerator brings.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Finding, at_least, at_most

# Draws every rank of the quickstart twice: with compiling, and when all is compiled. Says seconds by the clock and of the cores.
_PROGRAM = """
import json, resource, sys, time
begun = time.time()
import jax
devices, samples = map(int, sys.argv[1:])
jax.config.update("jax_num_cpu_devices", devices)
from mc.config import load_experiment
from mc.experiment.run import draw_steps
assert jax.device_count() == devices
config = load_experiment(None, ["run.method=direct", f"run.samples={samples}"])
imported = time.time()
draw_steps(config)
first, cores = time.time(), time.process_time()
draw_steps(config)
end, used = time.time(), time.process_time() - cores
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "import_s": imported - begun, "first_s": first - imported, "warm_s": end - first, "cores_s": used, "peak_kb": peak,
}))
"""


def run(*, quick: bool) -> Iterator[Finding]:
    """The same draws on one virtual device and on two, a process each, in turn."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    samples, repeats = (20_000, 2) if quick else (200_000, 3)
    pairs = [(_process(1, samples), _process(2, samples)) for _ in range(repeats)]
    # Both draw the same, so compiling is what the first call takes more than the second.
    one, two = (
        {key: statistics.median(pair[place][key] for pair in pairs) for key in pairs[0][0]}
        for place in (0, 1)
    )
    brought = statistics.median(first["warm_s"] / second["warm_s"] for first, second in pairs)
    busy = " and ".join(f"{each['cores_s'] / each['warm_s']:.1f}" for each in (one, two))
    note = f"virtual ones that share {len(os.sched_getaffinity(0))} cores, of which 1 and 2 devices keep {busy} busy; all is compiled"
    yield at_least("drawing every rank, two devices over one", brought, "x", 1.0, note)
    yield at_most(
        "compiling for two devices over one",
        (two["first_s"] - two["warm_s"]) / (one["first_s"] - one["warm_s"]),
        "x",
        1.5,
        f"{one['first_s'] - one['warm_s']:.1f} s for one; imports take {one['import_s']:.1f} s, drawing {one['warm_s']:.1f} s",
    )
    memory = f"of the whole process; {one['peak_kb'] / 1e3:,.0f} MB with one"
    yield at_most("peak memory, two devices over one", two["peak_kb"] / one["peak_kb"], "x", 1.5, memory)


def _process(devices: int, samples: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(devices), str(samples)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)
