"""Pictures of what follows from an experiment: on more ranks, with faster chips, and how its exchange would best be carried out."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mc.report.pictures.axes import size_text
from mc.report.pictures.base import COLOURS, QUIET, Panel, label, panel_title
from mc.report.times import UNITS

if TYPE_CHECKING:
    from mc.experiment.outlook import ChoiceMap, Saturation, Scaling, SlowestCurve
    from mc.experiment.scale import Mode
    from mc.experiment.training_outlook import PlanCurve, PlanSaturation

# Colours and markers.
_MODES: "dict[Mode, tuple[str, str]]" = {"weak": (COLOURS[0], "o"), "strong": (COLOURS[1], "s")}
_DASHED: Any = (0, (5, 2))
# So many sizes have room for the names of all.
_FEW = 6
_DOTTED: Any = (0, (2, 3))
# How dense the colour of an algorithm is under each protocol.
_DENSITY = {"LL": 0.35, "LL128": 0.65}


def slowest_panel(found: "SlowestCurve") -> Panel:
    """Median and p99 of the slowest of n ranks against n."""

    def draw(axes: Any) -> None:
        unit, scale = next((each for each in UNITS if found.p99.max() >= each[1]), UNITS[-1])
        axes.plot(found.ranks, found.p99 / scale, color=COLOURS[1], lw=1.8, ls=_DASHED, label="p99")
        axes.plot(found.ranks, found.median / scale, color=COLOURS[0], lw=1.8, label="median")
        axes.axhline(found.alone / scale, color=QUIET, lw=1.0, label="mean of one rank")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"computing of the slowest, {unit}")
        panel_title(axes, "the slowest of n")
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
        _here(axes, found.here)

    return draw


# What is drawn as one line: numbers of ranks, values, how it looks and what it is called.
_Line = tuple[Any, Any, dict[str, Any]]


def speedup_panel(found: "Scaling") -> Panel:
    """How many ranks' worth of computing is done, against ranks."""
    lines = [(found.ranks, found.speedup(mode), _of_mode(mode)) for mode in _MODES]
    return _speedup_panel(lines, found.here, "ranks' worth of computing")


def efficiency_panel(found: "Scaling") -> Panel:
    """The part of a step in which a rank computes, against ranks."""
    lines: list[_Line] = []
    for mode, (colour, _) in _MODES.items():
        dashed = {"color": colour, "lw": 1.2, "ls": _DASHED, "label": f"{mode}, without noise"}
        lines.append((found.ranks, 100 * found.efficiency(mode), _of_mode(mode)))
        lines.append((found.ranks, 100 * found.efficiency(mode, quiet=True), dashed))
    return _efficiency_panel(lines, found.here, "of a step spent computing, %")


def plan_speedup_panel(found: "dict[Mode, PlanCurve]", here: int) -> Panel:
    """Throughput of a plan on more replicas, in ranks of the smallest size, against ranks."""
    lines = [(each.ranks, each.speedup, _of_mode(mode)) for mode, each in found.items()]
    return _speedup_panel(lines, here, "throughput, in ranks")


def plan_efficiency_panel(found: "dict[Mode, PlanCurve]", here: int) -> Panel:
    """Throughput of a rank over that of a rank at the smallest size, against ranks."""
    lines = [(each.ranks, 100 * each.efficiency, _of_mode(mode)) for mode, each in found.items()]
    return _efficiency_panel(lines, here, "throughput of a rank, %")


def saturation_panel(found: "Saturation") -> Panel:
    """Speed-up of the step against that of the chips."""
    noisy, quiet = found.limits
    return _saturation_panel(
        found.factors, [("with noise", found.noisy, noisy), ("without", found.quiet, quiet)]
    )


def plan_saturation_panel(found: "PlanSaturation") -> Panel:
    """Speed-up of a plan's step against that of the chips."""
    return _saturation_panel(found.factors, [("without noise", found.speedups, found.limit)])


def _of_mode(mode: "Mode") -> dict[str, Any]:
    colour, marker = _MODES[mode]
    return {"color": colour, "marker": marker, "ms": 4, "lw": 1.8, "label": mode}


def _speedup_panel(lines: Sequence[_Line], here: int, unit: str) -> Panel:
    def draw(axes: Any) -> None:
        ranks = lines[0][0]
        axes.plot(ranks, ranks, color=QUIET, lw=1.0, label="ideal")
        for each, values, shown in lines:
            axes.plot(each, values, **shown)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylabel(unit)
        panel_title(axes, "scaling")
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
        _at_sizes(axes, ranks)
        _here(axes, here)

    return draw


def _efficiency_panel(lines: Sequence[_Line], here: int, unit: str) -> Panel:
    def draw(axes: Any) -> None:
        for each, values, shown in lines:
            axes.plot(each, values, **shown)
        axes.set_xscale("log")
        axes.set_ylim(0, 105)
        axes.set_ylabel(unit)
        panel_title(axes, "efficiency")
        axes.legend(frameon=False, fontsize=8.5, loc="lower left")
        _at_sizes(axes, lines[0][0])
        _here(axes, here)

    return draw


def _saturation_panel(factors: Any, kinds: Sequence[tuple[str, Any, float]]) -> Panel:
    """Of each kind of step its name, its speed-ups, and their limit."""

    def draw(axes: Any) -> None:
        axes.plot(factors, factors, color=QUIET, lw=1.0, label="ideal")
        looks = ((COLOURS[0], "-"), (COLOURS[1], _DASHED))
        for (name, speedups, limit), (colour, dashes) in zip(kinds, looks, strict=False):
            bound = f", at most {limit:.3g}x"
            axes.plot(factors, speedups, color=colour, ls=dashes, lw=1.8, label=name + bound)
            if limit <= factors[-1]:
                axes.axhline(limit, color=colour, lw=0.8, ls=_DOTTED)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        ticks = [1, 2, 4, 8, 16]
        axes.set_xticks(ticks, [f"{each}x" for each in ticks])
        axes.set_yticks(ticks, [f"{each}x" for each in ticks])
        axes.minorticks_off()
        axes.set_xlabel("chips so many times as fast")
        axes.set_ylabel("step so many times as fast")
        panel_title(axes, "faster chips")
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")

    return draw


def choice_panel(found: "ChoiceMap") -> Panel:
    """The fastest algorithm and protocol, by ranks and size."""
    names = list(dict.fromkeys(way[0] for row in found.rows for way in row.ways))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}

    def draw(axes: Any) -> None:
        from matplotlib.patches import Patch

        seen: dict[tuple[str, str], Any] = {}
        edges = _edges(np.log2(found.sizes))
        for row, each in enumerate(found.rows):
            for way, start, end in runs_of(each.ways):
                shown = {"color": colours[way[0]], "alpha": _density(way[1])}
                seen.setdefault(way, shown)
                axes.barh(row, edges[end] - edges[start], left=edges[start], height=0.92, lw=0, **shown)
        ranks = [each.ranks for each in found.rows]
        if found.here[0] in ranks:
            axes.plot(
                np.log2(found.here[1]), ranks.index(found.here[0]), "o", ms=7, mfc="#ffffff", mec="#000000"
            )
        low, high = edges[0], edges[-1]
        powers = np.arange(np.ceil(low), high, 4)
        axes.set_xticks(powers, [size_text(2.0**power) for power in powers], fontsize=8.5)
        axes.set_xlim(low, high)
        axes.set_yticks(range(len(ranks)), [f"{count:,}" for count in ranks])
        axes.set_xlabel("message size")
        axes.set_ylabel("ranks")
        axes.grid(visible=False)
        panel_title(axes, f"fastest {label(found.collective)}")
        handles = [
            Patch(label=way[0] if way[1] == "none" else f"{way[0]}, {way[1]}", **shown)
            for way, shown in sorted(seen.items(), key=lambda each: (names.index(each[0][0]), each[0][1]))
        ]
        axes.figure.legend(
            handles=handles,
            frameon=False,
            fontsize=8.5,
            loc="outside lower center",
            ncols=2,
        )

    return draw


def runs_of(ways: Any) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Neighbours that are alike, as (what, from, to)."""
    start = 0
    for place in range(1, len(ways) + 1):
        if place == len(ways) or ways[place] != ways[start]:
            yield ways[start], start, place
            start = place


def _density(protocols: str) -> float:
    """Of one protocol, or the mean of several."""
    each = [_DENSITY.get(name, 1.0) for name in protocols.split("+")]
    return sum(each) / len(each)


def _edges(middles: Any) -> Any:
    """Where each of rising numbers gives way to the next."""
    between = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[middles[0]], between, [middles[-1]]])


def _at_sizes(axes: Any, ranks: Any) -> None:
    """Few sizes are ticks themselves; those of many are chosen by the axis."""
    if len(ranks) <= _FEW:
        axes.set_xticks(list(ranks), [f"{int(each):,}" for each in ranks])
        axes.xaxis.minorticks_off()


def _here(axes: Any, ranks: int) -> None:
    axes.axvline(ranks, color=QUIET, lw=0.8, ls=_DOTTED)
    axes.annotate(
        f"this run: {ranks:,}",
        (ranks, 0.02),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        xytext=(4, 2) if ranks < np.sqrt(np.prod(axes.get_xlim())) else (-4, 2),
        ha="left" if ranks < np.sqrt(np.prod(axes.get_xlim())) else "right",
        fontsize=8.5,
        color=QUIET,
    )
    axes.set_xlabel("ranks")
