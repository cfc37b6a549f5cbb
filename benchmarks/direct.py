"""The direct method against the obvious NumPy loop, and its memory.

The NumPy loop draws a chunk of ranks × steps, takes the maximum over its ranks, and keeps the running
maximum; its chunk is the fastest of a few sizes on the machine at hand.
"""

import subprocess
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Finding, at_least, at_most, ratio, seconds
from mc.delays import Lognormal, Slowest, SlowestOf, draw

_STEPS = 1000
_PEAK = """
import jax
from mc.delays import {imports}, draw
import jax.numpy as jnp
law = {law}
jax.block_until_ready(jax.jit(lambda law: draw(law, jax.random.key(0), 1000, "direct"))(law))
# Not ru_maxrss, which a child inherits from whoever started it.
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024)
"""


def run(*, quick: bool) -> Iterator[Finding]:
    """Speed against NumPy for identical and for different ranks; peak memory of 10⁶ ranks × 10³ steps."""
    ranks, repeats = (20_000, 3) if quick else (100_000, 5)
    key = jax.random.key(0)
    draws = jax.jit(lambda law: draw(law, key, _STEPS, "direct"))
    median = np.linspace(1.0, 1.1, ranks)
    identical, different = (
        Slowest(Lognormal(1.0, 0.3), ranks),
        SlowestOf(Lognormal(median, np.full(ranks, 0.3))),
    )

    chunk = min((100, 300, 1000), key=lambda size: seconds(lambda: _numpy(np.zeros(20 * size), size)))
    same = np.zeros(ranks)
    note = f"{ranks:,} ranks x {_STEPS:,} steps, lognormal; NumPy in float64, chunks of {chunk} ranks"
    gain = ratio(lambda: _numpy(same, chunk), lambda: draws(identical), repeats=repeats)
    yield at_least("direct, identical ranks, against NumPy", gain, "x", 2, note)
    gain = ratio(lambda: _numpy(np.log(median), chunk), lambda: draws(different), repeats=repeats)
    yield at_least("direct, different ranks, against NumPy", gain, "x", 2, note)

    rate = ranks * _STEPS / min(seconds(lambda: draws(identical)) for _ in range(repeats)) / 1e6
    yield at_least("direct, identical ranks", rate, "M draws/s", 70, "the minimum is taken over the bits")
    rate = ranks * _STEPS / min(seconds(lambda: draws(different)) for _ in range(repeats)) / 1e6
    yield at_least("direct, different ranks", rate, "M draws/s", 70, "every draw is transformed")

    for name, imports, law in (
        ("identical", "Lognormal, Slowest", "Slowest(Lognormal(1.0, 0.3), 1e6)"),
        (
            "different",
            "Lognormal, SlowestOf",
            "SlowestOf(Lognormal(jnp.linspace(1.0, 1.1, 10**6), jnp.full(10**6, 0.3)))",
        ),
    ):
        script = _PEAK.format(imports=imports, law=law)
        peak = float(
            subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
        )
        yield at_most(
            f"direct, 1e6 {name} ranks x 1e3 steps: peak memory", peak, "MB", 500, "of the whole process"
        )


def _numpy(log_median: np.ndarray, chunk: int) -> jax.Array:
    rng = np.random.default_rng(0)
    slowest = np.zeros(_STEPS)
    for first in range(0, log_median.size, chunk):
        part = log_median[first : first + chunk, None]
        slowest = np.maximum(slowest, rng.lognormal(part, 0.3, (part.shape[0], _STEPS)).max(axis=0))
    return jnp.asarray(slowest)
