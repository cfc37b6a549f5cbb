"""Pictures of collectives as nccl-tests users know them: time against size, and bus bandwidth against size."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.errors import InputError
from mc.report.picture import COLOURS, DASHES, QUIET, Panel, label, panel_title, picture, save

FORMATS = (".svg", ".png", ".pdf")
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
    """Draws time and bus bandwidth against size, in the format that the suffix names; `collective_panels` says of what."""
    panels = collective_panels(curves, bus_factor=bus_factor, handovers=handovers, band=band)
    save(file, picture(panels, title))


def collective_panels(
    curves: Sequence[DrawnCurve], *, bus_factor: float, handovers: Sequence[float] = (), band: str = ""
) -> tuple[Panel, Panel]:
    """Time and bus bandwidth against size, all axes logarithmic.

    Args:
        curves: what to draw.
        bus_factor: busbw over algbw.
        handovers: sizes at which the fastest changes, bytes.
        band: what the bands show, for the legend.
    """

    def time(axes: Any) -> None:
        for place, curve in enumerate(curves):
            axes.plot(curve.sizes, curve.middle, label=label(curve.name), **_line(place))
            if curve.low is not None and curve.high is not None:
                colour = COLOURS[place % len(COLOURS)]
                axes.fill_between(curve.sizes, curve.low, curve.high, color=colour, alpha=0.2, lw=0)
        panel_title(axes, "time")
        _size_axes(axes, curves[0].sizes, handovers)
        axes.set_ylabel("time")
        axes.yaxis.set_major_formatter(lambda seconds, _: time_text(seconds))
        axes.legend(fontsize=8.5, frameon=False, title=band or None, title_fontsize=8.5)

    def bandwidth(axes: Any) -> None:
        for place, curve in enumerate(curves):
            rate = bus_factor * curve.sizes / curve.middle / 1e9
            axes.plot(curve.sizes, rate, label=label(curve.name), **_line(place))
        panel_title(axes, "bus bandwidth")
        _size_axes(axes, curves[0].sizes, handovers)
        axes.set_ylabel("busbw, GB/s")

    return time, bandwidth


def _line(place: int) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "ls": DASHES[place // len(COLOURS) % len(DASHES)],
        "lw": 1.8,
    }


def _size_axes(axes: Any, sizes: NDArray[np.float64], handovers: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for size in handovers:
        axes.axvline(size, color=QUIET, lw=0.8, ls=(0, (2, 3)), zorder=0)
    size_ticks(axes, float(sizes[0]), float(sizes[-1]))


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
