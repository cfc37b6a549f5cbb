"""The picture of `tailstep sensitivity`: the figures that matter most as bars; and that of `tailstep advise --samples`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.estimate import Estimate
from mc.report.pictures.base import COLOURS, Panel, picture, save

if TYPE_CHECKING:
    from mc.advise.tail import TailWorths
    from mc.sensitivity import Elasticity, Sensitivity

_MOST_BARS = 16


def plot_sensitivity(file: Path, found: "Sensitivity", by: str) -> None:
    """Draws the figures that matter most as bars with their intervals."""
    shown = found.elasticities[:_MOST_BARS]
    save(file, picture([tornado(shown, by)], found.name, width=8.5, height=1.2 + 0.32 * max(len(shown), 4)))


def tornado(shown: "tuple[Elasticity, ...]", by: str) -> Panel:
    """Bars of elasticities of one number, the longest at the top, with intervals and those of the mean beside."""

    def draw(axes: Any) -> None:
        names = [each.path for each in reversed(shown)]
        places = list(range(len(names)))
        for number, colour, height, shift in ((by, COLOURS[0], 0.5, 0.15), ("mean", COLOURS[4], 0.2, -0.25)):
            if number == "mean" == by and height == 0.2:
                continue
            values = [each.of(number) for each in reversed(shown)]
            at = [place + shift for place in places]
            axes.barh(at, [each.value for each in values], height=height, color=colour, label=number)
            ends = [(each.low, each.high) if _bounded(each) else (each.value,) * 2 for each in values]
            axes.hlines(at, [low for low, _ in ends], [high for _, high in ends], color="#222222", lw=1.5)
        axes.axvline(0, color="#222222", lw=0.8)
        axes.set_yticks(places, names, fontsize=8)
        axes.set_xlabel("% of the step for 1 % more")
        axes.legend(frameon=False, loc="lower right", fontsize=8)

    return draw


def _bounded(one: Estimate) -> bool:
    return math.isfinite(one.low) and math.isfinite(one.high)


def plot_tail(file: Path, worths: "TailWorths") -> None:
    """Draws what matters most to p99."""
    shown = tuple(each.step for each in worths.worths if each.step is not None)[:_MOST_BARS]
    height = 1.2 + 0.32 * max(len(shown), 4)
    save(file, picture([tornado(shown, "p99")], worths.found.name, width=8.5, height=height))
