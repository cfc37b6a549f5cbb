"""Whether this machine computes what it should, and how fast: for `tailstep doctor`.

The check draws the slowest of a million lognormal ranks, 2^20 times. Half of the draws must lie below the median, which is known
in closed form: F^(10⁶) = 1/2. The number below it is binomial; six standard errors are two false alarms in 10⁹.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mc.delays import Lognormal, Slowest, with_inverse
from mc.random import draw_levels

# Draws per second: thirty times less than two cores of a server took (6.5·10⁷), and more than any device has bandwidth for.
SLOW, FAST = 2e6, 1e12
_DRAWS, _RANKS = 1 << 20, 1e6
_REPEATS = 3
_ERRORS = 6.0


@dataclass(frozen=True)
class Device:
    """One device: its number, JAX's platform, the name of its kind, and its memory in bytes if that is known."""

    number: int
    platform: str
    kind: str
    memory_bytes: int | None


@dataclass(frozen=True)
class Checkup:
    """What was found.

    Attributes:
        devices: that JAX computes on.
        cache: folder of JAX's compilation cache; None where it is off.
        draws_per_s: slowest ranks of a million.
        compile_s: what compiling that took.
        errors: how many standard errors the number of draws below the median is off.
    """

    devices: tuple[Device, ...]
    cache: str | None
    draws_per_s: float
    compile_s: float
    errors: float

    @property
    def is_right(self) -> bool:
        """Whether draws follow their law."""
        return abs(self.errors) <= _ERRORS

    @property
    def is_slow(self) -> bool:
        """Whether draws come slower than expected of any machine."""
        return self.draws_per_s < SLOW


def check_up() -> Checkup:
    """Looks at the devices, and draws."""
    cache: str | None = getattr(jax.config, "jax_compilation_cache_dir", None)
    law = Slowest(with_inverse(Lognormal(1e-3, 0.3)), _RANKS)
    draw = eqx.filter_jit(lambda law, key: law.quantile(draw_levels(key, (_DRAWS,))))
    key = jax.random.key(0, impl="threefry2x32")
    begun = time.perf_counter()
    draws = np.asarray(draw(law, key))
    first = time.perf_counter() - begun
    seconds = []
    for index in range(_REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(draw(law, jax.random.fold_in(key, index)))
        seconds.append(time.perf_counter() - begun)
    median = float(law.quantile(jnp.log(0.5)))
    below = int(np.count_nonzero(draws <= median))
    return Checkup(
        devices=tuple(_device(each) for each in jax.devices()),
        cache=None if not cache else str(Path(cache)),
        draws_per_s=_DRAWS / min(seconds),
        compile_s=max(first - min(seconds), 0.0),
        errors=(below - _DRAWS / 2) / (math.sqrt(_DRAWS) / 2),
    )


def _device(device: Any) -> Device:
    # CPUs do not count theirs.
    memory = (device.memory_stats() or {}).get("bytes_limit")
    return Device(device.id, device.platform, device.device_kind, memory)
