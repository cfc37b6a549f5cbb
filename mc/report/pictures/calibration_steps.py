"""Measured and fitted distributions of step times, and what is left between them."""

from pathlib import Path
from typing import Any

import numpy as np

from mc.report.calibration_steps import FittedRun, StepsReport
from mc.report.pictures.axes import time_text
from mc.report.pictures.base import COLOURS, DASHES, QUIET, Panel, label, panel_title, picture, save

# Runs that are drawn, at most.
_MOST = 12


def plot_steps(file: Path, report: StepsReport) -> None:
    """Draws all runs, in the format that the suffix names; needs matplotlib."""
    panels = [distribution_panel(report), residual_panel(report)]
    save(
        file,
        picture(panels, f"{report.experiment}: measured (dots) and fitted (lines)", width=6.0, height=4.0),
    )


def distribution_panel(report: StepsReport) -> Panel:
    """The share of steps that are done by a time: measured as dots, fitted as lines; dashed of runs held out."""

    def draw(axes: Any) -> None:
        for place, run in enumerate(_shown(report)):
            levels, measured, fitted = np.array(run.curve).T
            colour = COLOURS[place % len(COLOURS)]
            name = f"{run.ranks:,} ranks{', held out' if run.held_out else ''}"
            axes.plot(measured, levels, "o", color=colour, ms=3)
            axes.plot(
                fitted, levels, ls=DASHES[1 if run.held_out else 0], color=colour, lw=1.3, label=label(name)
            )
        axes.xaxis.set_major_formatter(lambda seconds, _: time_text(seconds))
        axes.set_xlabel("step time")
        axes.set_ylabel("share of steps")
        panel_title(axes, "distribution")
        axes.legend(frameon=False, fontsize=8.5)

    return draw


def residual_panel(report: StepsReport) -> Panel:
    """Fitted over measured quantiles, less 1."""

    def draw(axes: Any) -> None:
        for place, run in enumerate(_shown(report)):
            levels, measured, fitted = np.array(run.curve).T
            axes.plot(
                levels,
                100 * (fitted / measured - 1),
                ls=DASHES[1 if run.held_out else 0],
                color=COLOURS[place % len(COLOURS)],
                lw=1.2,
            )
        axes.axhline(0, color=QUIET, lw=0.8)
        axes.set_xlabel("quantile")
        axes.set_ylabel("fitted / measured - 1, %")
        panel_title(axes, "residuals")

    return draw


def _shown(report: StepsReport) -> list[FittedRun]:
    return list(report.runs[:_MOST])
