"""What all kinds of fits of `tailstep calibrate` say and write alike."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mc.calibration import Identified, Parameter
    from mc.calibration.convergence import Convergence
    from mc.report.fit_reports import FittedFigure

TAKERS = "`tailstep collective` and `tailstep run` take it"
"""Of a calibrated cluster."""


@dataclass(frozen=True)
class Output:
    """What is asked for beside a table.

    Attributes:
        command: that repeats the fit.
        out: where to write the calibrated file.
        results: a folder to keep the fit in, for `tailstep report`.
        plot: where to draw it.
        as_json: whether to print one JSON object.
    """

    command: str
    out: Path | None
    results: Path | None
    plot: Path | None
    as_json: bool

    def keep(self, text: str) -> None:
        """Writes the calibrated file, if it is asked for."""
        if self.out is not None:
            self.out.write_text(text, encoding="utf-8")

    def show(
        self,
        plain: Callable[[], dict[str, Any]],
        text: Callable[[], "RenderableType"],
        takers: str,
        widest: int = 160,
    ) -> None:
        """Prints a fit.

        Args:
            plain: it, for JSON.
            text: it, for people.
            takers: which commands take the file that was written.
            widest: columns of a terminal that is not as wide as the text.
        """
        if self.as_json:
            print(json.dumps(plain(), allow_nan=False))
            return
        from rich.console import Console

        console, shown = Console(), text()
        console.width = max(console.width, min(Console(width=500).measure(shown).maximum, widest))
        console.print(shown, highlight=False)
        if self.out is not None:
            console.print(f"\nkept in {self.out}: {takers}", markup=False, highlight=False)


def fitted_figures(
    items: "Sequence[Parameter]", intervals: Sequence[Sequence[float]], known: "Identified"
) -> "list[FittedFigure]":
    """Parameters of a fit as plain figures; intervals are rows of (low, value, high)."""
    from mc.calibration import short_name
    from mc.report.fit_reports import FittedFigure

    return [
        FittedFigure(
            short_name(each), each.paths, each.dimension, each.center, low, value, high, known.learnt(place)
        )
        for place, (each, (low, value, high)) in enumerate(zip(items, intervals, strict=True))
    ]


def ending(convergence: "Convergence") -> dict[str, Any]:
    """How a fit ended, as reports hold it."""
    return {
        "losses": convergence.losses.tolist(),
        "gradient": convergence.gradient,
        "steps": convergence.steps,
        "outcome": convergence.outcome,
        "agreeing": convergence.agreeing,
    }
