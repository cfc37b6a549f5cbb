"""Measured and fitted steps of a transformer over numbers of ranks, and what is left between them."""

from pathlib import Path
from typing import Any

from mc.report.calibration_training import FittedSize, TrainingReport
from mc.report.pictures.base import COLOURS, DASHES, QUIET, Panel, panel_title, picture, save


def plot_training(file: Path, report: TrainingReport) -> None:
    """Draws all rows, in the format that the suffix names; needs matplotlib."""
    panels = [use_panel(report), residual_panel(report)]
    save(
        file,
        picture(panels, f"{report.experiment}: measured (dots) and fitted (lines)", width=6.0, height=4.0),
    )


def use_panel(report: TrainingReport) -> Panel:
    """MFU over ranks: measured as dots, hollow where held out; before the fit dotted, after it as lines."""

    def draw(axes: Any) -> None:
        rows = report.sizes
        ranks = [each.ranks for each in rows]
        for values, style, name in (
            ([each.prior for each in rows], DASHES[1], "before"),
            ([each.predicted for each in rows], DASHES[0], "fitted"),
        ):
            use = [100 * each.full_use / value for each, value in zip(rows, values, strict=True)]
            axes.plot(ranks, use, ls=style, color=COLOURS[0], lw=1.3, label=name)
        for held in (False, True):
            own = [each for each in rows if each.held_out == held]
            axes.plot(
                [each.ranks for each in own],
                [100 * each.full_use / each.measured for each in own],
                "o",
                color=COLOURS[1],
                mfc="none" if held else COLOURS[1],
                label=f"measured{', held out' if held else ''}" if own else None,
            )
        _axes(axes)
        axes.set_ylabel("MFU, %")
        panel_title(axes, "use of the peak")
        axes.legend(frameon=False, fontsize=8.5)

    return draw


def residual_panel(report: TrainingReport) -> Panel:
    """Fitted over measured steps, less 1; held out hollow."""

    def draw(axes: Any) -> None:
        for each in report.sizes:
            axes.plot([each.ranks], [_error(each)], "o", color=COLOURS[1], mfc=_fill(each))
        axes.axhline(0, color=QUIET, lw=0.8)
        _axes(axes)
        axes.set_ylabel("fitted / measured - 1, %")
        panel_title(axes, "residuals")

    return draw


def _error(size: FittedSize) -> float:
    return 100 * (size.predicted / size.measured - 1)


def _fill(size: FittedSize) -> str:
    return "none" if size.held_out else COLOURS[1]


def _axes(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("ranks")
