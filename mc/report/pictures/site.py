"""The picture of `tailstep energy --plans`: where the budget goes, and speed against energy of the best plans."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc.report.pictures.base import COLOURS, Panel, panel_title, picture, save
from mc.report.site import LABELS, shares

if TYPE_CHECKING:
    from mc.advise.site import Site


def plot_site(file: Path, found: "Site") -> None:
    """Draws where the budget goes, and speed against energy of the best plans."""
    save(file, picture(site_panels(found), found.job.config.name, width=6.4))


def site_panels(found: "Site") -> tuple[Panel, Panel]:
    """Where the budget goes, and the best plans: tokens per second against tokens per joule."""
    facility = found.job.facility

    def budget(axes: Any) -> None:
        both = shares(facility, found.job.design), shares(facility, found.plans[0].energy)
        bottom = [0.0, 0.0]
        for colour, (name, label) in zip(COLOURS, LABELS.items(), strict=False):
            heights = [100 * each[name] for each in both]
            shade = "#DDDDDD" if name == "reserve" else colour
            axes.bar(
                ["while all compute", "the best plan's step"],
                heights,
                bottom=bottom,
                color=shade,
                label=label,
            )
            bottom = [one + other for one, other in zip(bottom, heights, strict=True)]
        axes.set_ylabel("% of the budget")
        panel_title(axes, "where the power goes")
        axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))

    def plans(axes: Any) -> None:
        energies = [each.energy for each in found.plans]
        axes.plot(
            [each.tokens / each.seconds for each in energies],
            [each.tokens_per_joule for each in energies],
            "o",
            color=COLOURS[0],
            label="the best plans",
        )
        if found.written is not None:
            energy = found.written.energy
            label = "the file's" if found.written.found.fits else "the file's (does not fit)"
            axes.plot(
                energy.tokens / energy.seconds, energy.tokens_per_joule, "D", color=COLOURS[1], label=label
            )
        axes.set_xlabel("tokens/s")
        axes.set_ylabel("tokens/J, without the facility")
        panel_title(axes, "the best plans")
        axes.legend(frameon=False)

    return budget, plans
