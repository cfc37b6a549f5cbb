"""Pictures of `tailstep ridge`: roofs, one per tier, with a plan's dimensions on them; or ridges by generation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mc.network_roofline import Load, Ridge
from mc.report.plot import INK

# Okabe and Ito, distinct to colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
# FLOP per byte of dimensions that are drawn; beyond, nothing but a norm is sent.
_MOST = 1e9
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@contextmanager
def drawn(file: Path, title: str, panels: int = 1) -> Iterator[list[Any]]:
    """Axes side by side, saved to a file in the format that its suffix names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        figure = Figure(figsize=(5.6 * panels + 1.6, 4.8), facecolor="white", layout="constrained")
        every = list(figure.subplots(1, panels, squeeze=False)[0])
        yield every
        for axes in every:
            axes.grid(color="#E5E5E5", lw=0.7)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def plot_load(file: Path, name: str, found: Load) -> None:
    """Draws a roof for each tier and a plan's dimensions on them."""
    with drawn(file, name) as (axes,):
        roofs = list(dict.fromkeys(point.roof for point in found.points))
        reach = [point.intensity for point in found.points if point.intensity < _MOST]
        reach += [each.ridge for each in roofs]
        low, high = min(reach, default=1.0) / 3, max(reach, default=10.0) * 3
        shown = [each for each in found.points if each.intensity < _MOST]
        names = list(dict.fromkeys(point.dimension for point in found.points))
        for place, roof in enumerate(roofs):
            colour = COLOURS[place % len(COLOURS)]
            at = np.array([low, min(max(roof.ridge, low), high), high])
            top = np.minimum(roof.peak, at * roof.bandwidth) / 1e12
            axes.plot(at, top, color=colour, lw=1.6, label=f"{roof.name}, {roof.bandwidth / 1e9:,.4g} GB/s")
            axes.axvline(roof.ridge, color=colour, lw=0.8, ls=(0, (2, 3)))
        for point in shown:
            colour = COLOURS[roofs.index(point.roof) % len(COLOURS)]
            marker = _MARKERS[names.index(point.dimension) % len(_MARKERS)]
            axes.plot(point.intensity, point.attainable / 1e12, marker, color=colour, ms=7)
            axes.annotate(
                point.dimension,
                (point.intensity, point.attainable / 1e12),
                textcoords="offset points",
                xytext=(0, -14),
                ha="center",
                fontsize=8.5,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("FLOP per byte on the wire")
        axes.set_ylabel("attainable TFLOP/s of a chip")
        axes.legend(frameon=False, fontsize=8.5, loc="lower right")


def plot_ridges(file: Path, found: Sequence[Ridge]) -> None:
    """Draws ridge points against the year, one panel per tier, one colour per format."""
    tiers = list(dict.fromkeys(each.tier for each in found))
    formats = list(dict.fromkeys(each.number_format for each in found))
    with drawn(file, "Ridge points of the catalog's chips", len(tiers)) as panels:
        for axes, tier in zip(panels, tiers, strict=True):
            for place, number_format in enumerate(formats):
                chosen = [each for each in found if (each.tier, each.number_format) == (tier, number_format)]
                years, points = [each.year for each in chosen], [each.per_byte for each in chosen]
                marker, colour = _MARKERS[place % len(_MARKERS)], COLOURS[place % len(COLOURS)]
                axes.plot(years, points, marker, color=colour, label=number_format, ms=6)
                if place == len(formats) - 1 or len(formats) == 1 or number_format == "bf16":
                    for each in chosen:
                        axes.annotate(
                            each.chip,
                            (each.year, each.per_byte),
                            textcoords="offset points",
                            xytext=(5, 4),
                            fontsize=7,
                        )
            axes.set_yscale("log")
            axes.set_title(tier, loc="left", fontweight="bold")
            axes.set_xlabel("year")
            axes.set_ylabel("FLOP per byte on the wire")
            axes.xaxis.set_major_locator(_whole_years())
            axes.legend(frameon=False, fontsize=8.5)


def _whole_years() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)
