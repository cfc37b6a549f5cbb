"""The picture of serving: throughput of a chip against the time of a token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mc.report.pictures.base import COLOURS, QUIET, Panel, picture, save


class Point(Protocol):
    """What is drawn; `mc.experiment.serving_front.FrontPoint` has it."""

    @property
    def tp(self) -> int:
        """Ranks that share matrices."""
        ...

    @property
    def dp(self) -> int:
        """Groups with requests of their own."""
        ...

    @property
    def batch(self) -> int:
        """Requests at once."""
        ...

    @property
    def tpot(self) -> float:
        """Seconds per token."""
        ...

    @property
    def tokens_per_s_per_chip(self) -> float:
        """Throughput."""
        ...

    @property
    def is_best(self) -> bool:
        """Whether it is on the front."""
        ...


def plot_serving(file: Path, title: str, points: Sequence[Point]) -> None:
    """Draws a line of batches for each tp, and the front of all, in the format that the suffix names."""
    save(file, picture([serving_panel(points)], title, width=7.2))


def serving_panel(points: Sequence[Point]) -> Panel:
    """A line of batches for each tp, and the front of all."""

    def draw(axes: Any) -> None:
        best = sorted((each for each in points if each.is_best), key=lambda each: each.tpot)
        axes.plot(
            [1e3 * each.tpot for each in best],
            [each.tokens_per_s_per_chip for each in best],
            color=QUIET,
            lw=6,
            alpha=0.25,
            solid_capstyle="round",
            label="front",
        )
        layouts = dict.fromkeys((each.tp, each.dp) for each in points)
        for place, (tp, dp) in enumerate(layouts):
            own = [each for each in points if (each.tp, each.dp) == (tp, dp)]
            times = [1e3 * each.tpot for each in own]
            rates = [each.tokens_per_s_per_chip for each in own]
            colour = COLOURS[place % len(COLOURS)]
            name = f"tp {tp}" + (f" x dp {dp}" if dp > 1 else "")
            axes.plot(times, rates, "o-", ms=3.5, lw=1.4, color=colour, label=name)
            for index in {0, len(own) - 1}:
                axes.annotate(
                    f"{own[index].batch:,}",
                    (times[index], rates[index]),
                    (4, -9),
                    textcoords="offset points",
                    fontsize=7.5,
                    color=colour,
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("time per output token, ms")
        axes.set_ylabel("tokens/s of a chip that decodes")
        axes.legend(fontsize=8.5, frameon=False, title="numbers: requests at once", title_fontsize=8)

    return draw
