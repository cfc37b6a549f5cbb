"""Errors on sizes held out, log by log: the calibrated cluster and a plain line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.calibration.held_out import Score

FIT, LINE = "#0072B2", "#D55E00"


def draw(rows: Sequence[Score], path: Path) -> None:
    """Writes the picture; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.hashsalt": "calibration", "svg.fonttype": "path"}):
        figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
        for axes, name, line, target in (
            (panels[0], "median", "line_median", 0.05),
            (panels[1], "mean", "line_mean", 0.09),
        ):
            part = (np.arange(len(rows)) + 0.5) / len(rows)
            for key, colour, label in ((name, FIT, "calibrated"), (line, LINE, "latency-bandwidth line")):
                errors = np.sort([getattr(row, key) for row in rows])
                axes.plot(100 * errors, 100 * part, drawstyle="steps-mid", color=colour, label=label)
            axes.axvline(100 * target, color="#888888", linewidth=0.8, linestyle=":")
            axes.set(xscale="log", xlim=(0.4, 100), xlabel=f"{name} error on sizes held out (%)")
            axes.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
            axes.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("logs (%)")
        panels[0].legend(frameon=False, loc="upper left")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)
