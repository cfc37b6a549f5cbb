"""The picture of `tailstep scale`: throughput and efficiency against chips."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.report.pictures.base import COLOURS, QUIET, Panel, panel_title, picture, save

if TYPE_CHECKING:
    from mc.experiment.scale import ScaleResult


def plot_scale(file: Path, found: "ScaleResult") -> None:
    """Draws throughput and efficiency against chips, in the format that the suffix names."""
    save(file, picture(scale_panels(found), f"{found.model} on {found.cluster}"))


def scale_panels(found: "ScaleResult") -> tuple[Panel, Panel]:
    """Throughput and efficiency against chips."""
    points = found.points
    chips = [each.chips for each in points]
    is_cut = points[0].tokens_per_s is not None
    rates = [
        each.tokens_per_s if each.tokens_per_s is not None else each.work / each.times.mean.value
        for each in points
    ]

    def throughput(axes: Any) -> None:
        ideal = [rates[0] * each / chips[0] for each in chips]
        axes.plot(chips, ideal, color=QUIET, lw=1.0, ls=(0, (4, 3)), label="ideal")
        axes.plot(chips, rates, color=COLOURS[0], lw=1.8, marker="o", ms=3.5, label=f"{found.mode} scaling")
        axes.set_yscale("log")
        axes.set_ylabel("tokens/s" if is_cut else "steps/s of the work as written")
        panel_title(axes, "throughput")
        axes.legend(frameon=False)
        bottom(axes)

    def efficiency(axes: Any) -> None:
        shares = [100 * each.efficiency for each in points]
        axes.plot(chips, shares, color=COLOURS[0], lw=1.8, marker="o", ms=3.5)
        axes.set_ylim(0, max(105.0, *shares))
        axes.set_ylabel("throughput of a chip, % of the smallest size's")
        panel_title(axes, "efficiency")
        bottom(axes)

    def bottom(axes: Any) -> None:
        axes.set_xscale("log", base=2)
        axes.set_xticks(chips[:: max(1, -(-len(chips) // 6))])
        axes.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
        axes.set_xlabel("chips")
        axes.minorticks_off()
        if found.stop is not None:
            axes.axvline(points[found.stop - 1].chips, color=QUIET, lw=0.8, ls=(0, (2, 3)), zorder=0)

    return throughput, efficiency
