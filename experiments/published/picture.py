"""Predicted over measured steps, one strip per table: filled where a row was fitted, open where it was not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.published.report import WANTED, Prediction

# Okabe and Ito's colours, distinct to colour-blind readers.
COLOURS = {"A100": "#0072B2", "H100": "#D55E00", "B200": "#009E73", "GB200": "#009E73"}
OTHER = "#CC79A7"
LEAST, MOST = 0.5, 1.6


def draw(found: Sequence[Prediction], path: Path) -> None:
    """Writes the picture; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    tables = list(dict.fromkeys(each.table for each in found))
    with plt.rc_context({"svg.hashsalt": "published", "svg.fonttype": "path"}):
        figure, axes = plt.subplots(figsize=(9, 0.34 * len(tables) + 1.1), layout="constrained")
        axes.axvspan(1 - WANTED, 1 + WANTED, color="#E4E4E4", zorder=0)
        axes.axvline(1, color="#222222", linewidth=0.8)
        scatter = np.random.default_rng(0)
        for place, table in enumerate(reversed(tables)):
            rows = [each for each in found if each.table == table]
            shift = scatter.uniform(-0.25, 0.25, len(rows)) if len(rows) > 3 else np.zeros(len(rows))
            for each, up in zip(rows, shift, strict=True):
                colour = COLOURS.get(each.chip, OTHER)
                axes.plot(
                    np.clip(1 + each.error, LEAST, MOST),
                    place + up,
                    "o",
                    markersize=2.2 if len(rows) > 200 else 3.6,
                    alpha=0.35 if len(rows) > 200 else 0.8,
                    markeredgecolor=colour,
                    markerfacecolor=colour if each.fitted else "none",
                    markeredgewidth=0.7,
                    rasterized=len(rows) > 200,
                )
        axes.set_yticks(range(len(tables)), [each.replace("_", " ") for each in reversed(tables)])
        ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
        axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
        axes.set(xlim=(LEAST - 0.02, MOST + 0.02), ylim=(-0.6, len(tables) - 0.4))
        axes.set_xlabel("predicted / measured step (filled: fitted; open: not; grey: within 8 %)")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)
