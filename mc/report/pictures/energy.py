"""The picture of `tailstep energy`: power of a chip by what takes it, and joules of each tier."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.energy import StepEnergy
from mc.report.energy import parts
from mc.report.pictures.base import COLOURS, Panel, label, panel_title, picture, save

if TYPE_CHECKING:
    pass


def plot_energy(file: Path, name: str, found: StepEnergy) -> None:
    """Draws a chip's power by what takes it, and the joules of each tier."""
    save(file, picture(energy_panels(found), name, width=6.4))


def energy_panels(found: StepEnergy) -> tuple[Panel, Panel]:
    """A chip's power by what takes it, and the joules of each tier."""

    def power(axes: Any) -> None:
        shown = [(name, joules / found.seconds) for name, joules in parts(found)][::-1]
        axes.barh([label(name) for name, _ in shown], [watts for _, watts in shown], color=COLOURS[0])
        axes.set_xlabel("mean power, W")
        panel_title(axes, "power of a chip's part")

    def tiers(axes: Any) -> None:
        names = [label(tier.name) for tier in found.tiers]
        bottom = [0.0] * len(names)
        for place, part in enumerate(("moved", "waiting", "ports", "adapter")):
            heights = [getattr(tier, part) for tier in found.tiers]
            axes.bar(names, heights, bottom=bottom, color=COLOURS[place], label=part)
            bottom = [one + other for one, other in zip(bottom, heights, strict=True)]
        axes.set_ylabel("energy of a chip in a step, J")
        panel_title(axes, "energy by tier")
        axes.legend(frameon=False, fontsize=8.5)

    return power, tiers
