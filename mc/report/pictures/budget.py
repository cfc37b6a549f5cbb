"""The picture of `tailstep advise --budget`: what is spent on each figure, and the descent."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.report.pictures.base import COLOURS, Panel, label, panel_title, picture, save

if TYPE_CHECKING:
    from mc.advise.budget import Spending


def plot_budget(file: Path, found: "Spending") -> None:
    """Draws what is spent on each figure, now and at best, and the descent."""
    save(file, picture(budget_panels(found), found.name, width=6.4))


def budget_panels(found: "Spending") -> tuple[Panel, Panel]:
    """What is spent on each figure, now and at best; the best step so far."""
    best = found.allocation

    def spent(axes: Any) -> None:
        names = [label(each.name) for each in best.figures]
        places = range(len(names))
        axes.barh(
            [each + 0.2 for each in places],
            [each.cost for each in best.figures],
            0.38,
            color=COLOURS[0],
            label="now",
        )
        axes.barh([each - 0.2 for each in places], best.spent, 0.38, color=COLOURS[1], label="best")
        axes.set_yticks(list(places), names)
        axes.set_xscale("log")
        axes.set_xlabel(f"{label(found.unit)} for each chip")
        panel_title(axes, "what is spent")
        axes.legend(frameon=False)

    def descent(axes: Any) -> None:
        axes.plot(best.path, color=COLOURS[0], lw=1.4)
        axes.axhline(best.before, color=COLOURS[1], lw=1.0, label="now")
        axes.set_xlabel("step of the descent")
        axes.set_ylabel("best step so far, s")
        panel_title(axes, "convergence")
        axes.legend(frameon=False)

    return spent, descent
