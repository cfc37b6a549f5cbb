"""Pictures of `tailstep ridge`: roofs, one per tier, with a plan's dimensions on them; or ridges by generation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mc.network_roofline import Load, Ridge
from mc.report.pictures.base import COLOURS, MARKERS, Panel, label, panel_title, picture, save

# FLOP per byte of dimensions that are drawn; beyond, nothing but a norm is sent.
MOST_INTENSITY = 1e9
# Points nearer than this factor have their names below each other.
_APART = 1.5


def plot_load(file: Path, name: str, found: Load) -> None:
    """Draws a roof for each tier and a plan's dimensions on them."""
    save(file, picture([load_panel(found)], name, width=7.2))


def load_panel(found: Load) -> Panel:
    """A roof for each tier, and a plan's dimensions on them."""
    roofs = list(dict.fromkeys(point.roof for point in found.points))
    reach = [point.intensity for point in found.points if point.intensity < MOST_INTENSITY]
    reach += [each.ridge for each in roofs]
    low, high = min(reach, default=1.0) / 3, max(reach, default=10.0) * 3
    names = list(dict.fromkeys(point.dimension for point in found.points))

    def draw(axes: Any) -> None:
        for place, roof in enumerate(roofs):
            colour = COLOURS[place % len(COLOURS)]
            at = np.array([low, min(max(roof.ridge, low), high), high])
            top = np.minimum(roof.peak, at * roof.bandwidth) / 1e12
            name = f"{label(roof.name)}, {roof.bandwidth / 1e9:,.4g} GB/s"
            axes.plot(at, top, color=colour, lw=1.6, label=name)
            axes.axvline(roof.ridge, color=colour, lw=0.8, ls=(0, (2, 3)))
        last = 0.0
        for point in sorted(found.points, key=lambda each: each.intensity):
            if point.intensity >= MOST_INTENSITY:
                continue
            colour = COLOURS[roofs.index(point.roof) % len(COLOURS)]
            marker = MARKERS[names.index(point.dimension) % len(MARKERS)]
            axes.plot(point.intensity, point.attainable / 1e12, marker, color=colour, ms=7)
            axes.annotate(
                point.dimension,
                (point.intensity, point.attainable / 1e12),
                textcoords="offset points",
                xytext=(0, -26 if point.intensity < _APART * last else -14),
                ha="center",
                fontsize=8.5,
            )
            last = point.intensity
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("FLOP per byte on the wire")
        axes.set_ylabel("attainable TFLOP/s of a chip")
        axes.legend(frameon=False, fontsize=8.5, loc="lower right")

    return draw


def plot_ridges(file: Path, found: Sequence[Ridge]) -> None:
    """Draws ridge points against the year, one panel per tier, one colour per format."""
    panels = [_ridges_panel(found, tier) for tier in dict.fromkeys(each.tier for each in found)]
    save(file, picture(panels, "Ridge points of the catalog's chips", width=6.4))


def _ridges_panel(found: Sequence[Ridge], tier: str) -> Panel:
    formats = list(dict.fromkeys(each.number_format for each in found))

    def draw(axes: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        for place, number_format in enumerate(formats):
            chosen = [each for each in found if (each.tier, each.number_format) == (tier, number_format)]
            years, points = [each.year for each in chosen], [each.per_byte for each in chosen]
            marker, colour = MARKERS[place % len(MARKERS)], COLOURS[place % len(COLOURS)]
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
        panel_title(axes, tier)
        axes.set_xlabel("year")
        axes.set_ylabel("FLOP per byte on the wire")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False, fontsize=8.5)

    return draw
