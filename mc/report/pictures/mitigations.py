"""The picture of `tailstep mitigations`: p99, and useful work per second, of each."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.estimate import Estimate
from mc.report.mitigations import AS_IT_IS
from mc.report.pictures.base import COLOURS, INK, QUIET, label, panel_title, picture, save
from mc.report.times import scale_for
from mc.results.comparison import Difference

if TYPE_CHECKING:
    from mc.experiment.mitigations import Mitigations


def plot_mitigations(file: Path, found: "Mitigations") -> None:
    """Draws p99 and useful work per second of each, with intervals."""
    names = [AS_IT_IS, *(each.name for each in found.tried)]

    def tail(axes: Any) -> None:
        scale = scale_for([found.result.estimates.p99])
        own = found.result.estimates.p99.value
        axes.axvline(own / scale.seconds, color=QUIET, lw=1)
        _points(
            axes,
            names,
            [Estimate(own, own, own), *(_after(each.found.times["p99"]) for each in found.tried)],
            scale.seconds,
        )
        axes.set_xlabel(f"p99 of a step ({scale.unit})")
        panel_title(axes, "the tail")

    def work(axes: Any) -> None:
        axes.axvline(1, color=QUIET, lw=1)
        _points(axes, names, [Estimate(1, 1, 1), *(each.throughput for each in found.tried)], 1.0)
        axes.set_xlabel("useful work per second, over that as it is")
        axes.tick_params(labelleft=False)
        panel_title(axes, "what gets done")

    height = 1.2 + 0.32 * len(names)
    save(file, picture([tail, work], found.name, width=5.6, height=height))


def _points(axes: Any, names: list[str], estimates: list[Estimate], size: float) -> None:
    for place, each in enumerate(estimates):
        colour = INK if place == 0 else COLOURS[0]
        ends = [end if math.isfinite(end) else each.value for end in (each.low, each.high)]
        axes.plot([end / size for end in ends], [place, place], color=colour, lw=2)
        axes.plot([each.value / size], [place], "o", color=colour, ms=5)
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.invert_yaxis()


def _after(each: Difference) -> Estimate:
    return Estimate(each.after, each.before + each.difference.low, each.before + each.difference.high)
