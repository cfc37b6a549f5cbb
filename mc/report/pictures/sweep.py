"""A sweep as a picture: step times, efficiency and what doublings bring, over one path, a curve for each point of the others.

Under weak scaling every chip keeps its work, so n chips do n/T(n) of it per second, and a doubling brings 2·T(n)/T(2n).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mc.config.load_sweep import Sweep
from mc.config.sweep_axes import numbers_of
from mc.errors import InputError
from mc.report.pictures.base import COLOURS, QUIET, Panel, label, panel_title, picture, save
from mc.report.sweep import Objective, heading_of

MOST_CURVES = len(COLOURS)
RANKS = "plan.ranks"
# What a doubling has to bring, as in `tailstep scale`.
WORTH = 1.9


@dataclass(frozen=True)
class Curve:
    """Cells that differ in one path.

    Attributes:
        name: what the others are.
        at: values of the path, rising.
        rows: columns by name, in the same order.
    """

    name: str
    at: NDArray[np.float64]
    rows: dict[str, NDArray[np.float64]]

    def doublings(self) -> NDArray[np.float64]:
        """What doubling to each rank count brings; the first has none. Between others it is by doubling."""
        times, steps = self.rows["step_time_mean_s"], np.log2(self.at)
        brought = 2 ** np.diff(steps) * times[:-1] / times[1:]
        return brought ** (1 / np.diff(steps))

    def stops(self, worth: float = WORTH) -> float | None:
        """The rank count up to which doubling pays; None if it does to the end."""
        low = np.flatnonzero(self.doublings() < worth)
        return None if not len(low) else float(self.at[low[0]])


def path_to_plot(sweep: Sweep) -> str:
    """The path that goes along the bottom: rank counts, else the one with most numbers.

    Raises:
        InputError: there is none, or there are too many curves.
    """
    found: dict[str, int] = {}
    paths = iter(sweep.paths)
    for axis in sweep.axes:
        for column in zip(*axis.points, strict=True):
            path = next(paths)
            if len(axis.paths) == 1 and numbers_of(column) is not None and len(column) > 1:
                found[path] = len(column)
    if not found:
        raise InputError("--plot: expected a path with several numbers to draw along; the sweep has none")
    path = RANKS if RANKS in found else max(found, key=lambda each: found[each])
    curves = len(sweep) // found[path]
    if curves > MOST_CURVES:
        raise InputError(f"--plot: expected at most {MOST_CURVES} curves over {path}; got {curves:,}")
    return path


def curves_of(
    table: pa.Table, paths: Sequence[str], path: str, texts: Callable[[dict[str, Any]], dict[str, str]]
) -> list[Curve]:
    """The curves over a path, of the cells that did not fail.

    Args:
        table: rows of the sweep.
        paths: that change.
        path: along the bottom.
        texts: of a row, what each path is, for the legend.
    """
    others = [each for each in paths if each != path]
    members: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in sorted(table.to_pylist(), key=lambda row: row["cell"]):
        if row["status"] == "ok":
            values = texts(row)
            members.setdefault(tuple(values[each] for each in others), []).append(row)
    names = ("step_time_mean_s", "step_time_p50_s", "step_time_p99_s", "efficiency", "straggler_share")
    found = []
    for values, rows in members.items():
        rows.sort(key=lambda row: row[path])
        columns = {name: np.array([row[name] for row in rows], np.float64) for name in names}
        name = ", ".join(
            f"{key.rpartition('.')[2]} {value}" for key, value in zip(others, values, strict=True)
        )
        found.append(Curve(name or "all", np.array([row[path] for row in rows]), columns))
    return found


def doubling_lines(path: str, curves: Sequence[Curve]) -> list[str]:
    """Where doubling stops paying, curve by curve; nothing over other paths than rank counts."""
    if path != RANKS:
        return []
    found = []
    for curve in curves:
        if len(curve.at) < 2:
            continue
        stop, least = curve.stops(), float(curve.doublings().min())
        if stop is None:
            text = f"doubling pays up to {curve.at[-1]:,.0f} chips; the least that one brings is {least:.2f}x"
        else:
            text = f"doubling pays up to {stop:,.0f} chips; the next brings less than {WORTH}x"
        found.append(f"{curve.name}: {text}")
    return found


def plot_sweep(file: Path, title: str, path: str, curves: Sequence[Curve]) -> None:
    """Draws the curves, in the format that the suffix names."""
    save(file, picture(sweep_panels(path, curves), title, width=4.6))


def front_panel(table: pa.Table, front: pa.Table, objectives: Sequence[Objective]) -> Panel:
    """Every cell by two objectives, and those that no other beats in both."""
    one, other = (each.column for each in objectives)

    def draw(axes: Any) -> None:
        scales = [1e3 if _is_time(each) else 1.0 for each in (one, other)]
        every, best = (
            [
                scale * each.column(name).to_numpy().astype(np.float64)
                for name, scale in zip((one, other), scales, strict=True)
            ]
            for each in (table, front)
        )
        axes.plot(*every, "o", color=QUIET, ms=3.5, alpha=0.6, label="cells")
        axes.step(*best, where="post", color=COLOURS[0], lw=1.2)
        axes.plot(*best, "o", color=COLOURS[0], ms=5, label="beaten by none in both")
        for name, values, put in ((one, every[0], "x"), (other, every[1], "y")):
            ends = np.nanmin(values), np.nanmax(values)
            if ends[0] > 0 and ends[1] > 10 * ends[0]:
                getattr(axes, f"set_{put}scale")("log")
            getattr(axes, f"set_{put}label")(
                f"{heading_of(name)}, ms" if _is_time(name) else heading_of(name)
            )
        panel_title(axes, "Pareto front")
        axes.legend(fontsize=8, frameon=False)

    return draw


def _is_time(column: str) -> bool:
    return column.endswith("_s") and not column.endswith("per_s")


def sweep_panels(path: str, curves: Sequence[Curve], unit: str = "") -> tuple[Panel, ...]:
    """Step times and shares of the step along a path; of rank counts also what doublings bring.

    Args:
        path: that goes along the bottom.
        curves: what to draw.
        unit: of the path.
    """
    of_ranks = path == RANKS

    def times(axes: Any) -> None:
        for place, curve in enumerate(curves):
            rows = curve.rows
            axes.plot(curve.at, 1e3 * rows["step_time_p50_s"], label=named(curve, "p50"), **line(place))
            dashed: dict[str, Any] = line(place) | {"ls": (0, (5, 2))}
            axes.plot(curve.at, 1e3 * rows["step_time_p99_s"], label=named(curve, "p99"), **dashed)
        axes.set_ylabel("step time, ms")
        panel_title(axes, "step time")
        bottom(axes)

    def shares(axes: Any) -> None:
        for place, curve in enumerate(curves):
            rows = curve.rows
            axes.plot(curve.at, 100 * rows["efficiency"], label=named(curve, "efficiency"), **line(place))
            dotted: dict[str, Any] = line(place) | {"ls": (0, (1, 1.5))}
            waiting = named(curve, "waiting for the slowest")
            axes.plot(curve.at, 100 * rows["straggler_share"], label=waiting, **dotted)
        axes.set_ylim(0, 105)
        axes.set_ylabel("of the step, %")
        panel_title(axes, "efficiency and waiting")
        bottom(axes)

    def doublings(axes: Any) -> None:
        for place, curve in enumerate(curves):
            if len(curve.at) > 1:
                axes.plot(curve.at[1:], curve.doublings(), label=label(curve.name), **line(place))
        axes.axhline(WORTH, color=QUIET, lw=0.8, ls=(0, (2, 3)))
        least = [float(curve.doublings().min()) for curve in curves if len(curve.at) > 1]
        axes.set_ylim(min(1.75, *least), 2.01)
        axes.set_ylabel("factor on throughput")
        panel_title(axes, "what a doubling brings")
        bottom(axes)

    def named(curve: Curve, what: str) -> str:
        return what if len(curves) == 1 else f"{label(curve.name)}, {what}"

    def line(place: int) -> dict[str, Any]:
        return {"color": COLOURS[place % len(COLOURS)], "lw": 1.8}

    def bottom(axes: Any) -> None:
        if min(curve.at.min() for curve in curves) > 0:
            axes.set_xscale("log", base=2)
        if of_ranks:
            axes.set_xticks(curves[0].at[:: max(1, -(-len(curves[0].at) // 5))])
            axes.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
        axes.minorticks_off()
        axes.set_xlabel("chips" if of_ranks else f"{label(path)}, {unit}" if unit else label(path))
        axes.legend(fontsize=8, frameon=False)

    is_a_scaling = of_ranks and any(len(curve.at) > 1 for curve in curves)
    return (times, shares, doublings) if is_a_scaling else (times, shares)
