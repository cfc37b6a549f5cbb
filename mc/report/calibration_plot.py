"""Measured and predicted times of a calibration over sizes, before and after the fit; below them the errors."""

from pathlib import Path
from typing import Any

import numpy as np

from mc.report.calibration import CalibrationReport
from mc.report.plot import INK, QUIET

# Okabe and Ito, distinct to colour-blind readers.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
_TICKS = {8.0: "8 B", 2.0**10: "1 KiB", 2.0**17: "128 KiB", 2.0**24: "16 MiB", 2.0**31: "2 GiB"}


def plot_calibration(file: Path, report: CalibrationReport) -> None:
    """Draws all curves, in the format that the suffix names; needs matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        figure = Figure(figsize=(8, 6.4), layout="constrained")
        times, errors = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for place, curve in enumerate(report.curves):
            colour = _COLOURS[place % len(_COLOURS)]
            sizes, measured = np.asarray(curve.sizes), np.asarray(curve.measured)
            shown = slice(None, None, max(1, len(sizes) // 150))
            times.plot(
                sizes[shown], 1e6 * measured[shown], "o", color=colour, markersize=3.5, label=curve.label
            )
            times.plot(sizes, 1e6 * np.asarray(curve.prior), ":", color=colour, linewidth=1)
            times.plot(sizes, 1e6 * np.asarray(curve.predicted), "-", color=colour, linewidth=1.3)
            errors.plot(
                sizes, 100 * (np.asarray(curve.predicted) / measured - 1), "-", color=colour, linewidth=1
            )
        times.set(xscale="log", yscale="log", ylabel="time (us)")
        times.set_title(
            f"{report.cluster}: measured (dots), before (dotted) and after the fit", loc="left", fontsize=10
        )
        times.legend(frameon=False, fontsize=8.5)
        errors.axhline(0, color=QUIET, linewidth=0.8)
        errors.set(xlabel="message", ylabel="fitted / measured - 1 (%)")
        low, high = times.get_xlim()
        ticks = {size: text for size, text in _TICKS.items() if low <= size <= high}
        errors.set_xticks(list(ticks), list(ticks.values()))
        errors.minorticks_off()
        for axes in (times, errors):
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
