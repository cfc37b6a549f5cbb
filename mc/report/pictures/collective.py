"""Pictures of collectives as nccl-tests users know them: time against size, and bus bandwidth against size."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.report.pictures.axes import size_ticks, time_text
from mc.report.pictures.base import COLOURS, DASHES, QUIET, Panel, label, panel_title, picture, save


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
