"""What a fit of step times leaves, by number of ranks."""

from typing import Any

from mc.report.calibration_steps import StepsReport, by_size
from mc.report.pictures.base import COLOURS, QUIET, Panel, panel_title

_MARKS = ("o", "^")


def size_panel(report: StepsReport) -> Panel:
    """Fitted over measured quantiles over the number of ranks, less 1; hollow where held out, lines over several runs."""

    def draw(axes: Any) -> None:
        named: set[float] = set()
        for size in by_size(report):
            for place, (level, (low, middle, high)) in enumerate(zip(size.levels, size.ratios, strict=True)):
                colour = COLOURS[place]
                axes.errorbar(
                    [size.ranks],
                    [100 * (middle - 1)],
                    [[100 * (middle - low)], [100 * (high - middle)]],
                    fmt=_MARKS[place],
                    color=colour,
                    mfc="none" if size.held_out else colour,
                    lw=1.0,
                    label=None if level in named else f"p{100 * level:g}",
                )
                named.add(level)
        axes.axhline(0, color=QUIET, lw=0.8)
        axes.set_xscale("log", base=2)
        ranks = sorted({run.ranks for run in report.runs})
        axes.set_xticks(ranks, [f"{each:,}" for each in ranks])
        axes.minorticks_off()
        axes.set_xlabel("ranks")
        axes.set_ylabel("fitted / measured - 1, %")
        panel_title(axes, "by number of ranks")
        axes.legend(frameon=False, fontsize=8.5)

    return draw
