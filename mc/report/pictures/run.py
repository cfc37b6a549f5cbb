"""Pictures of a run: the distribution of the step, its tail, and what the mean is made of; of one run or several.

Bands are pointwise intervals of quantiles (`mc.estimate.quantile`), which know that the steps of a realisation are alike; where the
samples give no upper bound the band ends.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mc.estimate import QUANTILES
from mc.estimate.quantile import quantile_estimate
from mc.report.pictures.base import COLOURS, DASHES, INK, QUIET, Panel, label, number_text, panel_title
from mc.report.run_table import LABELS
from mc.report.times import UNITS
from mc.results import RunResult

_POINTS, _BAND_POINTS = 240, 40
# Of the tail below which a distribution function looks like 1.
_REST = 2e-3
# Of a waterfall's width: beyond, there is no room for words behind a bar.
_BEHIND = 0.62
# Of the width of the picture: nearer quantiles are marked without their names.
_APART = 0.07


def distribution_panel(runs: Sequence[RunResult], names: Sequence[str] = ("",)) -> Panel:
    """The distribution function of the step."""

    def draw(axes: Any) -> None:
        unit, scale = _unit(runs)
        ends = []
        for place, (run, name) in enumerate(zip(runs, names, strict=True)):
            ordered = np.sort(np.asarray(run.samples, np.float64), axis=None)
            levels = np.linspace(0.0, 1.0, _POINTS)
            times = _quantiles(ordered, levels)
            shown = _line(place) | {"label": label(name) if name else None}
            axes.plot(times / scale, 100 * levels, **shown)
            _band(axes, run, ordered, scale, place, survival=False)
            ends += [times[0] / scale, _quantiles(ordered, np.array([1 - _REST]))[0] / scale]
        if len(runs) == 1:
            _marks(axes, runs[0], scale, ends)
        low, high = min(ends), max(ends)
        margin = 0.04 * (high - low) or 0.02 * abs(high) or 1.0
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(0, 102)
        axes.set_xlabel(f"step time, {unit}")
        axes.set_ylabel("steps that take no longer, %")
        panel_title(axes, "distribution")
        if len(runs) > 1:
            axes.legend(frameon=False, fontsize=8.5, loc="lower right")

    return draw


def tail_panel(runs: Sequence[RunResult], names: Sequence[str] = ("",)) -> Panel:
    """The share of steps that take longer, both axes logarithmic."""

    def draw(axes: Any) -> None:
        unit, scale = _unit(runs)
        for place, (run, name) in enumerate(zip(runs, names, strict=True)):
            ordered = np.sort(np.asarray(run.samples, np.float64), axis=None)
            survival = np.geomspace(1.0, 1.0 / ordered.size, _POINTS)
            shown = _line(place) | {"label": label(name) if name else None}
            axes.plot(_quantiles(ordered, 1.0 - survival) / scale, survival, **shown)
            _band(axes, run, ordered, scale, place, survival=True)
        if len(runs) == 1:
            for key, probability in QUANTILES.items():
                value = getattr(runs[0].estimates, key).value / scale
                axes.plot(value, 1.0 - probability, "o", color=INK, ms=4)
                axes.annotate(
                    LABELS[key].partition(" ")[0],
                    (value, 1.0 - probability),
                    textcoords="offset points",
                    xytext=(6, 3),
                    fontsize=8.5,
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"step time, {unit}")
        axes.set_ylabel("share of steps that take longer")
        panel_title(axes, "tail")
        if len(runs) > 1:
            axes.legend(frameon=False, fontsize=8.5, loc="lower left")

    return draw


def waterfall_panel(parts: Mapping[str, float]) -> Panel:
    """Parts of the mean (seconds, by name) one behind the other, up to their sum."""

    def draw(axes: Any) -> None:
        unit, scale = _unit_of(sum(parts.values()))
        total, names = 0.0, [label(name.replace("_", " ")) for name in parts]
        whole = sum(parts.values()) or 1.0
        for row, seconds in enumerate(parts.values()):
            colour = COLOURS[row % (len(COLOURS) - 1)]
            axes.barh(row, seconds / scale, left=total / scale, color=colour, height=0.65)
            text = f"{number_text(float(f'{seconds / scale:.3g}'))} {unit}, {100 * seconds / whole:.1f} %"
            # Behind the bar where there is room, else where there is most: before it or on it.
            start, end = total / scale, (total + seconds) / scale
            behind, before = total + seconds < _BEHIND * whole, total > seconds
            place, offset, side = (
                (end, 4, "left") if behind else (start, -4, "right") if before else (start, 6, "left")
            )
            axes.annotate(
                text,
                (place, row),
                textcoords="offset points",
                xytext=(offset, 0),
                ha=side,
                va="center",
                fontsize=8.5,
                color=INK if behind or before else "#ffffff",
            )
            total += seconds
        axes.barh(len(names), total / scale, color=QUIET, height=0.65)
        axes.set_yticks(range(len(names) + 1), [*names, "sum"])
        axes.invert_yaxis()
        axes.set_xlabel(f"mean of a step, {unit}")
        axes.grid(visible=False, axis="y")
        panel_title(axes, "where the mean goes")

    return draw


def differences_panel(differences: Mapping[str, tuple[float, float, float]]) -> Panel:
    """Differences of times (seconds: value, low, high; by name) as points with their intervals."""

    def draw(axes: Any) -> None:
        unit, scale = _unit_of(max((abs(value) for value, _, _ in differences.values()), default=0.0))
        for row, (value, low, high) in enumerate(differences.values()):
            ends = [bound / scale if np.isfinite(bound) else value / scale for bound in (low, high)]
            axes.plot(ends, [row, row], color=COLOURS[0], lw=2)
            axes.plot(value / scale, row, "o", color=COLOURS[0], ms=5)
        axes.axvline(0, color=QUIET, lw=0.8)
        axes.set_yticks(range(len(differences)), [label(name.replace("_", " ")) for name in differences])
        axes.invert_yaxis()
        axes.margins(y=0.08)
        axes.set_xlabel(f"second less first, {unit}")
        panel_title(axes, "difference")

    return draw


def _line(place: int) -> dict[str, Any]:
    return {"color": COLOURS[place % len(COLOURS)], "ls": DASHES[place % len(DASHES)], "lw": 1.8}


def _marks(axes: Any, run: RunResult, scale: float, ends: Sequence[float]) -> None:
    named = -np.inf
    for key, probability in QUANTILES.items():
        value = getattr(run.estimates, key).value / scale
        if value > max(ends):
            continue
        axes.plot([value, value], [0, 100 * probability], color=QUIET, lw=0.8, ls=(0, (2, 3)))
        axes.plot(value, 100 * probability, "o", color=INK, ms=4)
        if value - named < _APART * (max(ends) - min(ends)):
            continue
        named = value
        below = {"textcoords": "offset points", "xytext": (4, -12), "fontsize": 8.5}
        axes.annotate(LABELS[key].partition(" ")[0], (value, 100 * probability), **below)


def _quantiles(ordered: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Observed samples, as `mc.estimate` has them."""
    places = np.ceil(levels * ordered.size - 1e-9).astype(np.int64)
    return ordered[np.clip(places, 1, ordered.size) - 1]


def _band(
    axes: Any, run: RunResult, ordered: NDArray[np.float64], scale: float, place: int, *, survival: bool
) -> None:
    size = ordered.size
    if size < 20 or float(np.ptp(run.samples)) == 0.0:
        return
    levels = (
        1.0 - np.geomspace(0.999, 1.5 / size, _BAND_POINTS)
        if survival
        else np.linspace(0.01, 0.995, _BAND_POINTS)
    )
    heights = 1.0 - levels if survival else 100 * levels
    found = [
        quantile_estimate(run.samples, float(level), run.estimates.confidence, ordered=ordered)[0]
        for level in levels
    ]
    kept = [
        (height, each.low, each.high)
        for height, each in zip(heights, found, strict=True)
        if np.isfinite([each.low, each.high]).all()
    ]
    if kept:
        height, low, high = np.array(kept).T
        colour = COLOURS[place % len(COLOURS)]
        axes.fill_betweenx(height, low / scale, high / scale, color=colour, alpha=0.2, lw=0)


def _unit(runs: Sequence[RunResult]) -> tuple[str, float]:
    return _unit_of(max(run.estimates.p50.value for run in runs))


def _unit_of(seconds: float) -> tuple[str, float]:
    return next((each for each in UNITS if abs(seconds) >= each[1]), UNITS[-1])
