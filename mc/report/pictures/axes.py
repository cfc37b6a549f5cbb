"""Sizes and times along axes, as users of nccl-tests write them."""

from typing import Any

import numpy as np

_SIZES = (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3), ("TiB", 1024.0**4))


def size_ticks(axes: Any, smallest: float, largest: float) -> None:
    """Names message sizes along the bottom as nccl-tests users write them."""
    first, last = np.floor(np.log2([smallest, largest]))
    powers = 2.0 ** np.arange(first, last + 1, max(1, round((last - first) / 5)))
    axes.set_xticks(powers, [size_text(size) for size in powers])
    axes.set_xlabel("message size")
    axes.minorticks_off()


def size_text(size: float) -> str:
    """A message size as nccl-tests users write it: `64 KiB`."""
    unit, scale = next((pair for pair in reversed(_SIZES) if size >= pair[1]), _SIZES[0])
    return f"{size / scale:.3g} {unit}"


def time_text(seconds: float) -> str:
    """A time at an axis: `20 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
