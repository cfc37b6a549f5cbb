"""The picture of `tailstep optics`: energy against length, and copper's reach against lane rate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mc.catalog.media import media
from mc.optics import compare, passive_reach
from mc.report.pictures.base import COLOURS, DASHES, INK, Panel, panel_title, picture, save


def plot_optics(file: Path, rates: Sequence[float]) -> None:
    """Draws energy per bit of a link against its length at the fastest rate, and reach against rate."""
    panels = (energy_panel(max(rates)), reach_panel())
    save(file, picture(panels, "Copper against optics, intervals of 90 %", width=6.4))


def energy_panel(rate: float) -> Panel:
    """Energy per bit of both ends against length, by medium, for lanes of one rate."""

    def draw(axes: Any) -> None:
        for place, each in enumerate(compare(rate, 1e-3)):
            # Up to where it reaches, and not beyond the picture.
            lengths = np.geomspace(0.1, min(each.reach.value, 100.0), 30)
            energy = [_energy(rate, length, place) for length in lengths]
            colour = COLOURS[place % len(COLOURS)]
            middle, low, high = (np.array([point[k] for point in energy]) * 1e12 for k in range(3))
            axes.plot(lengths, middle, color=colour, ls=DASHES[place % len(DASHES)], lw=1.8, label=each.name)
            axes.fill_between(lengths, low, high, color=colour, alpha=0.12, lw=0)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("length, m")
        axes.set_ylabel("energy of both ends, pJ/bit")
        panel_title(axes, f"energy, {rate / 1e9:g} Gb/s lanes")
        axes.legend(frameon=False, fontsize=8)

    return draw


def reach_panel() -> Panel:
    """How far passive copper reaches against the rate of a lane, and what has been published."""

    def draw(axes: Any) -> None:
        lanes = media().lanes
        every = [each.rate for each in lanes]
        for thin, name, colour in ((False, "26 AWG", COLOURS[0]), (True, "30 AWG", COLOURS[1])):
            reach = [passive_reach(rate, thin=thin) for rate in every]
            x = np.array(every) / 1e9
            axes.plot(x, [each.value for each in reach], color=colour, marker="o", ms=4, label=name)
            axes.fill_between(
                x, [each.low for each in reach], [each.high for each in reach], color=colour, alpha=0.12, lw=0
            )
        for lane in lanes:
            if lane.published is not None:
                ends = [lane.published.least, lane.published.most]
                axes.plot([lane.rate / 1e9] * 2, ends, color=INK, lw=2.5, solid_capstyle="butt")
        axes.plot([], [], color=INK, lw=2.5, label="published")
        axes.set_xscale("log", base=2)
        axes.set_xticks([rate / 1e9 for rate in every], [f"{rate / 1e9:g}" for rate in every])
        axes.set_yscale("log")
        axes.set_xlabel("lane rate, Gb/s")
        axes.set_ylabel("reach, m")
        panel_title(axes, "reach of passive copper")
        axes.legend(frameon=False, fontsize=8.5)

    return draw


def _energy(rate: float, length: float, place: int) -> tuple[float, float, float]:
    energy = compare(rate, float(length))[place].energy
    return (np.nan, np.nan, np.nan) if energy is None else energy
