"""Pictures of `tailstep advise`: plans by time and memory, by mean and p99; and what figures are worth."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.report.advise import front_of_tails
from mc.report.pictures.base import COLOURS, QUIET, Panel, label, panel_title, picture, save

if TYPE_CHECKING:
    from mc.advise.evaluated import SearchResult
    from mc.advise.rank import Drawn
    from mc.advise.worth import Worths

_BLUE, _ORANGE = COLOURS[:2]


def plot_plans(file: Path, found: "SearchResult", drawn: Sequence["Drawn"] = ()) -> None:
    """Draws the front of step time and memory, and p99 against the mean where steps were drawn."""
    panels = [_plans_panel(found), *([_tail_panel(drawn)] if drawn else [])]
    save(file, picture(panels, found.name, width=7.5 if not drawn else 6.4))


def _tail_panel(drawn: Sequence["Drawn"]) -> Panel:
    def draw(axes: Any) -> None:
        front = front_of_tails(drawn)
        means = [each.mean.value for each in front]
        axes.step(means, [each.p99.value for each in front], where="post", color=_BLUE, lw=1.4)
        for each in drawn:
            # Intervals of few samples have no end.
            low, high = (
                end if math.isfinite(end) else each.p99.value for end in (each.p99.low, each.p99.high)
            )
            colour = _BLUE if each in front else QUIET
            axes.plot([each.mean.value] * 2, [low, high], color=colour, lw=1.0)
            axes.plot(each.mean.value, each.p99.value, "o", color=colour, ms=4)
        axes.set_xlabel("mean step, s")
        axes.set_ylabel("p99 of a step, s")
        panel_title(axes, "the best plans with noise")

    return draw


def _plans_panel(found: "SearchResult") -> Panel:
    def draw(axes: Any) -> None:
        memory = [each.memory / 1e9 for each in found.front]
        axes.step(memory, [each.step for each in found.front], where="pre", color=_BLUE, lw=1.4)
        axes.plot(
            memory, [each.step for each in found.front], "o", color=_BLUE, ms=4, label="no other beats both"
        )
        if found.written is not None:
            written = found.written
            axes.plot(written.memory / 1e9, written.step, "D", color=_ORANGE, ms=6, label="the file's")
        if found.available is not None:
            axes.axvline(found.available / 1e9, color=QUIET, lw=0.8, ls=(0, (2, 3)), label="a chip has")
        axes.set_xlabel("memory of the fullest rank, GB")
        axes.set_ylabel("step, s")
        axes.legend(frameon=False)

    return draw


def plot_worth(file: Path, found: "Worths") -> None:
    """Draws elasticities as bars."""
    save(file, picture([worth_panel(found)], found.name, width=7.5))


def worth_panel(found: "Worths") -> Panel:
    """Elasticities as bars, each with what less and more of the figure does: they differ where the step has a kink."""

    def draw(axes: Any) -> None:
        shown = found.worths[:15][::-1]
        names, values = [label(each.name) for each in shown], [each.elasticity for each in shown]
        axes.barh(names, values, color=_BLUE)
        axes.hlines(names, [each.low for each in shown], [each.high for each in shown], color=_ORANGE, lw=2.5)
        axes.set_xlabel("% of the step for 1 % more")

    return draw
