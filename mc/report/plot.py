"""Pictures of collectives as nccl-tests users know them: time against size, and bus bandwidth against size.

matplotlib is optional: it is imported when a picture is asked for, and `check_plot` says so before minutes of
work, not after them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.errors import InputError

FORMATS = (".svg", ".png", ".pdf")
INK, QUIET = "#222222", "#666666"
# Okabe and Ito, distinct to colour-blind readers; then dashes tell colours apart that come back.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)))
_SIZES = (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3), ("TiB", 1024.0**4))


@dataclass(frozen=True)
class DrawnCurve:
    """One algorithm over message sizes.

    Attributes:
        name: what the legend calls it.
        sizes: bytes, float64[sizes].
        middle: seconds, the floor or the median.
        low: seconds, a low quantile; None without a distribution.
        high: seconds, a high quantile; None likewise.
    """

    name: str
    sizes: NDArray[np.float64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


def check_plot(file: Path) -> None:
    """Raises InputError if a picture cannot be written there."""
    if file.suffix not in FORMATS:
        raise InputError(f"--plot: expected a file that ends in {', '.join(FORMATS)}; got {file}")
    if not file.parent.is_dir():
        raise InputError(f"--plot: there is no folder {file.parent}")
    if find_spec("matplotlib") is None:
        raise InputError(
            "--plot: needs matplotlib, which is not installed; `pip install 'tailstep[plot]'` gets it"
        )


def plot_collective(
    file: Path,
    title: str,
    curves: Sequence[DrawnCurve],
    *,
    bus_factor: float,
    handovers: Sequence[float] = (),
    band: str = "",
) -> None:
    """Draws time and bus bandwidth against size, both axes logarithmic, in the format that the suffix names.

    Args:
        file: where to.
        title: of the whole.
        curves: what to draw.
        bus_factor: busbw over algbw.
        handovers: sizes at which the fastest changes, bytes.
        band: what the bands show, for the legend.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        figure = Figure(figsize=(10.5, 4.8), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2)
        for place, curve in enumerate(curves):
            line: Any = {
                "color": _COLOURS[place % len(_COLOURS)],
                "ls": _DASHES[place // len(_COLOURS) % len(_DASHES)],
                "lw": 1.8,
            }
            left.plot(curve.sizes, curve.middle, label=curve.name, **line)
            right.plot(curve.sizes, bus_factor * curve.sizes / curve.middle / 1e9, **line)
            if curve.low is not None and curve.high is not None:
                left.fill_between(curve.sizes, curve.low, curve.high, color=line["color"], alpha=0.2, lw=0)
        for axes, name in ((left, "time"), (right, "bus bandwidth, GB/s")):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_title(name, loc="left", fontsize=11, fontweight="bold")
            axes.set_xlabel("message size")
            for size in handovers:
                axes.axvline(size, color=QUIET, lw=0.8, ls=(0, (2, 3)), zorder=0)
            _ticks(axes, curves[0].sizes)
            axes.grid(color="#E5E5E5", lw=0.7)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        left.yaxis.set_major_formatter(lambda seconds, _: _time(seconds))
        left.legend(fontsize=8.5, frameon=False, title=band or None, title_fontsize=8.5)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def _ticks(axes: Any, sizes: NDArray[np.float64]) -> None:
    first, last = np.floor(np.log2(sizes[[0, -1]]))
    powers = 2.0 ** np.arange(first, last + 1, max(1, round((last - first) / 6)))
    axes.set_xticks(powers, [size_text(size) for size in powers])
    axes.minorticks_off()


def size_text(size: float) -> str:
    """A message size as nccl-tests users write it: `64 KiB`."""
    unit, scale = next((pair for pair in reversed(_SIZES) if size >= pair[1]), _SIZES[0])
    return f"{size / scale:.3g} {unit}"


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
