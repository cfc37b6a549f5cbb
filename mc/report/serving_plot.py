"""The picture of serving: throughput of a chip against the time of a token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mc.report.plot import INK, QUIET

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")


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
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    style: Any = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "tailstep"}
    with mpl.rc_context(style | dict.fromkeys(("text.color", "axes.labelcolor"), INK)):
        figure = Figure(figsize=(7.2, 4.8), facecolor="white", layout="constrained")
        axes = figure.subplots()
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
            colour = _COLOURS[place % len(_COLOURS)]
            name = f"tp {tp}" + (f" x dp {dp}" if dp > 1 else "")
            axes.plot(times, rates, "o-", ms=3.5, lw=1.4, color=colour, label=name)
            for index in {0, len(own) - 1}:
                text = f"{own[index].batch:,}"
                axes.annotate(
                    text,
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
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.minorticks_off()
        axes.grid(color="#E5E5E5", lw=0.7)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(fontsize=8.5, frameon=False, title="numbers: requests at once", title_fontsize=8)
        axes.set_title(title, loc="left", fontsize=11)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)
