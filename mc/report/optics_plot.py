"""The picture of `tailstep optics`: energy against length, and copper's reach against lane rate."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mc.catalog.media import media
from mc.optics import compare, passive_reach
from mc.report.plot import INK
from mc.report.ridge_plot import COLOURS, drawn

_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)), "-")


def plot_optics(file: Path, rates: Sequence[float]) -> None:
    """Draws energy per bit of a link against its length at the fastest rate, and reach against rate."""
    fastest = max(rates)
    with drawn(file, "Copper against optics, intervals of 90 %", 2) as (left, right):
        for place, each in enumerate(compare(fastest, 1e-3)):
            # Up to where it reaches, and not beyond the picture.
            lengths = np.geomspace(0.1, min(each.reach.value, 100.0), 30)
            energy = [_energy(fastest, length, place) for length in lengths]
            colour = COLOURS[place % len(COLOURS)]
            middle, low, high = (np.array([point[k] for point in energy]) * 1e12 for k in range(3))
            left.plot(
                lengths, middle, color=colour, ls=_DASHES[place % len(_DASHES)], lw=1.8, label=each.name
            )
            left.fill_between(lengths, low, high, color=colour, alpha=0.12, lw=0)
        left.set_xscale("log")
        left.set_ylim(bottom=0)
        left.set_xlabel("length, m")
        left.set_title(f"pJ/bit with both ends, {fastest / 1e9:g} Gb/s lanes", loc="left", fontweight="bold")
        left.legend(frameon=False, fontsize=8)
        lanes = media().lanes
        every = [each.rate for each in lanes]
        for thin, name, colour in ((False, "26 AWG", COLOURS[0]), (True, "30 AWG", COLOURS[1])):
            reach = [passive_reach(rate, thin=thin) for rate in every]
            x = np.array(every) / 1e9
            right.plot(x, [each.value for each in reach], color=colour, marker="o", ms=4, label=name)
            right.fill_between(
                x, [each.low for each in reach], [each.high for each in reach], color=colour, alpha=0.12, lw=0
            )
        for lane in lanes:
            if lane.published is not None:
                ends = [lane.published.least, lane.published.most]
                right.plot([lane.rate / 1e9] * 2, ends, color=INK, lw=2.5, solid_capstyle="butt")
        right.plot([], [], color=INK, lw=2.5, label="published")
        right.set_xscale("log", base=2)
        right.set_xticks([rate / 1e9 for rate in every], [f"{rate / 1e9:g}" for rate in every])
        right.set_yscale("log")
        right.set_xlabel("lane rate, Gb/s")
        right.set_title("reach of passive copper, m", loc="left", fontweight="bold")
        right.legend(frameon=False, fontsize=8.5)


def _energy(rate: float, length: float, place: int) -> tuple[float, float, float]:
    energy = compare(rate, float(length))[place].energy
    return (np.nan, np.nan, np.nan) if energy is None else energy
