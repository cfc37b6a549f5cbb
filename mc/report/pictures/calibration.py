"""Measured and predicted times of a calibration over sizes, before and after the fit; bus bandwidths; and the errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mc.report.calibration import CalibrationReport, FittedCurve
from mc.report.pictures.axes import size_ticks, time_text
from mc.report.pictures.base import COLOURS, QUIET, Panel, label, panel_title, picture, save

# Points of a curve that are drawn, at most.
_MOST = 150


def plot_calibration(file: Path, report: CalibrationReport) -> None:
    """Draws all curves, in the format that the suffix names; needs matplotlib."""
    panels = (time_panel(report), error_panel(report))
    title = f"{report.cluster}: measured (dots), before (dotted) and after the fit"
    save(file, picture(panels, title, width=8.0, height=3.4, stacked=True))


def time_panel(report: CalibrationReport) -> Panel:
    """Times: measured as dots, before the fit dotted, after it as lines."""

    def draw(axes: Any) -> None:
        _draw_curves(axes, report, lambda curve, times: np.asarray(times))
        axes.set_ylabel("time")
        axes.yaxis.set_major_formatter(lambda seconds, _: time_text(seconds))
        panel_title(axes, "time")
        axes.legend(frameon=False, fontsize=8.5)

    return draw


def bandwidth_panel(report: CalibrationReport) -> Panel:
    """The same as bus bandwidths."""

    def draw(axes: Any) -> None:
        _draw_curves(
            axes,
            report,
            lambda curve, times: curve.bus_factor * np.asarray(curve.sizes) / np.asarray(times) / 1e9,
        )
        axes.set_ylabel("busbw, GB/s")
        panel_title(axes, "bus bandwidth")

    return draw


def error_panel(report: CalibrationReport) -> Panel:
    """Fitted over measured, less 1."""

    def draw(axes: Any) -> None:
        for place, curve in enumerate(report.curves):
            error = np.asarray(curve.predicted) / np.asarray(curve.measured) - 1
            colour = COLOURS[place % len(COLOURS)]
            if curve.held_out:
                axes.plot(curve.sizes, 100 * error, "o", ms=4, mfc="none", color=colour, lw=1)
            else:
                axes.plot(curve.sizes, 100 * error, "-", marker=".", ms=3, color=colour, lw=1)
        axes.axhline(0, color=QUIET, lw=0.8)
        axes.set_xscale("log", base=2)
        _ticks(axes, report)
        axes.set_ylabel("fitted / measured - 1, %")
        panel_title(axes, "residuals")

    return draw


def _draw_curves(axes: Any, report: CalibrationReport, of: Callable[[FittedCurve, Any], Any]) -> None:
    for place, curve in enumerate(report.curves):
        colour = COLOURS[place % len(COLOURS)]
        sizes = np.asarray(curve.sizes)
        shown = slice(None, None, max(1, len(sizes) // _MOST))
        measured = of(curve, curve.measured)
        face = "none" if curve.held_out else colour
        axes.plot(
            sizes[shown], measured[shown], "o", color=colour, mfc=face, ms=3.5, label=label(curve.label)
        )
        axes.plot(sizes, of(curve, curve.prior), ":", color=colour, lw=1)
        axes.plot(sizes, of(curve, curve.predicted), "-", color=colour, lw=1.3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    _ticks(axes, report)


def _ticks(axes: Any, report: CalibrationReport) -> None:
    sizes = [size for curve in report.curves for size in curve.sizes]
    size_ticks(axes, min(sizes), max(sizes))
