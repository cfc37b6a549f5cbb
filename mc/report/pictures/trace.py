"""A sampled step in time: a row for each stage of the pipeline, passes by kind, and the critical path over them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mc.report.pictures.base import COLOURS, INK, Panel, panel_title
from mc.report.times import UNITS
from mc.results import Trace

# Beyond so many passes a picture is a grey wall.
MOST_PASSES = 5000
_KINDS = {
    "F": ("forward", COLOURS[0]),
    "B": ("backward", COLOURS[4]),
    "I": ("gradients of inputs", COLOURS[4]),
}
_KINDS["W"] = ("gradients of weights", COLOURS[2])
# Bars nearer to each other than this part of the step are one.
_APART = 1500
_END = ("end of the step", COLOURS[3])


def gantt_panel(trace: Trace) -> Panel:
    """What stages compute, when, and what the step waited for."""

    def draw(axes: Any) -> None:
        unit, scale = next((each for each in UNITS if trace.step_s >= each[1]), UNITS[-1])
        found: dict[tuple[str, str], dict[int, list[tuple[float, float]]]] = {}
        for one in trace.slices:
            if one.category != "compute" and one.lane != "step":
                continue
            kind = _END if one.lane == "step" else _KINDS.get(one.name[:1], _KINDS["F"])
            bar = one.start / scale, (one.end - one.start) / scale
            found.setdefault(kind, {}).setdefault(one.track, []).append(bar)
        for (name, colour), rows in found.items():
            for place, (track, bars) in enumerate(sorted(rows.items())):
                shown = {"facecolors": colour, "lw": 0, "label": name if place == 0 else None}
                axes.broken_barh(_joined(bars, trace.step_s / scale / _APART), (track - 0.38, 0.76), **shown)
        times, tracks = [], []
        for one in trace.critical:
            times += [one.start / scale, one.end / scale]
            tracks += [one.track, one.track]
        axes.plot(times, tracks, color=INK, lw=1.4, label="critical path")
        rows = sorted(trace.tracks)
        step = max(1, -(-len(rows) // 16))
        names = {track: "end" if trace.tracks[track] == "all stages" else str(track) for track in rows}
        ticks = [track for track in rows if track % step == 0 or names[track] == "end"]
        axes.set_yticks(ticks, [names[track] for track in ticks])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, np.ceil(1e3 * trace.step_s / scale) / 1e3)
        axes.set_xlabel(f"time in the step, {unit}")
        axes.set_ylabel("stage")
        axes.grid(visible=False, axis="y")
        panel_title(axes, f"a {trace.quantile} step")
        axes.figure.legend(
            *axes.get_legend_handles_labels(),
            frameon=False,
            fontsize=8.5,
            loc="outside lower center",
            ncols=5,
        )

    return draw


def _joined(bars: Sequence[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Bars (start, length) of one kind, as one where hardly anything is between them."""
    found: list[tuple[float, float]] = []
    for start, length in sorted(bars):
        if found and start - sum(found[-1]) < gap:
            found[-1] = (found[-1][0], start + length - found[-1][0])
        else:
            found.append((start, length))
    return found
