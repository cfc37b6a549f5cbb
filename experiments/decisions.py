"""What to build: ridge points by generation, copper against optics by lane rate, joules of a step, and what a gigawatt feeds.

    python -m experiments.decisions [--quick] [--json] [--plot FILE]

The tables behind docs/ridge.md, docs/optics.md and docs/energy.md, from the catalog and the shipped experiments. `--quick` leaves
out the larger of these.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mc.catalog.media import media
from mc.config import load_experiment
from mc.energy import Facility, chips_within, design
from mc.experiment.energy import experiment_energy, unit
from mc.network_roofline import movements
from mc.optics import crossover, nvl72, passive_reach

EXPERIMENTS = ("llama3-405b-16k", "megatron-1t-3072", "deepseek-v3")
QUICK = ("megatron-1t-3072",)
# Modules of 1.6 Tb/s that take 30 W, one end (industry reports).
END = 18.75e-12
SITE = Facility(1e9, 1.2)


@dataclass(frozen=True)
class Moved:
    """How a ridge moved: factors, of which the last takes it back."""

    chips: str
    tier: str
    ridge: float
    one_format: float
    formats: float
    wires: float


@dataclass(frozen=True)
class Reach:
    """Metres of passive copper, and up to where it takes less than co-packaged optics: best guess, 5 % and 95 %."""

    gigabits: float
    reach: tuple[float, float, float]
    crossover: tuple[float, float, float]


@dataclass(frozen=True)
class Joules:
    """A step of an experiment, for each chip."""

    experiment: str
    chips: int
    step_s: float
    joules: float
    watts: float
    network: float
    tokens_per_joule: float
    by_tier: dict[str, float]
    design_watts: float
    fed: int


def ridges() -> list[Moved]:
    """From generation to generation."""
    found = []
    for each in movements():
        shares = (each.silicon, each.formats, each.wires)
        factors = [float(2.718281828459045**share) for share in shares]
        found.append(
            Moved(f"{each.before.chip} to {each.after.chip}", each.before.tier, each.factor, *factors)
        )
    return found


def reaches() -> list[Reach]:
    """By lane rate."""
    found = []
    for each in media().lanes:
        both = passive_reach(each.rate), crossover(each.rate, "co-packaged")
        found.append(Reach(each.rate / 1e9, *((one.value, one.low, one.high) for one in both)))
    return found


def joules(names: Sequence[str]) -> list[Joules]:
    """Of shipped experiments."""
    found = []
    for name in names:
        config = load_experiment(f"configs/{name}.yaml")
        energy, drawn = experiment_energy(config), design(config.cluster).watts_per_rank
        found.append(
            Joules(
                name,
                energy.ranks,
                energy.seconds,
                energy.per_rank,
                energy.watts_per_rank,
                energy.network / energy.per_rank,
                energy.tokens_per_joule,
                {tier.name: tier.moved for tier in energy.tiers},
                drawn,
                chips_within(SITE, drawn, unit(config)),
            )
        )
    return found


def spine() -> dict[str, float]:
    """NVL72's: cables, and kilowatts of modules in their place."""
    rack = nvl72()
    return {"cables": rack.cables, "optics_kw": rack.power(END) / 1e3}


def study(names: Sequence[str] = EXPERIMENTS) -> dict[str, Any]:
    """Everything."""
    return {"ridges": ridges(), "reaches": reaches(), "spine": spine(), "joules": joules(names)}


def tables(found: dict[str, Any]) -> list[Table | str]:
    """Everything for people."""
    moved = _table(
        "Ridge points in the fastest format", "", "tier", "ridge", "one format", "formats", "wires"
    )
    for each in found["ridges"]:
        factors = (
            f"{each.ridge:.3g}x",
            f"{each.one_format:.3g}x",
            f"{each.formats:.3g}x",
            f"1/{each.wires:.3g}",
        )
        moved.add_row(each.chips, each.tier, *factors)
    copper = _table(
        "Passive copper, m", "Gb/s a lane", "reach", "90 %", "less than co-packaged optics", "90 %"
    )
    for each in found["reaches"]:
        cells = [
            cell
            for value, low, high in (each.reach, each.crossover)
            for cell in (f"{value:.2f}", f"{low:.2f} to {high:.2f}")
        ]
        copper.add_row(f"{each.gigabits:g}", *cells)
    headings = (
        "chips",
        "step",
        "J",
        "W",
        "network",
        "tokens/J",
        "moving bits by tier, J",
        "W at most",
        "1 GW feeds",
    )
    power = _table("A step, for each chip", "", *headings)
    for each in found["joules"]:
        tiers = ", ".join(f"{name} {moving:.3g}" for name, moving in each.by_tier.items())
        cells = (f"{each.chips:,}", f"{each.step_s:.3g} s", f"{each.joules:,.0f}", f"{each.watts:,.0f}")
        rest = (f"{100 * each.network:.1f} %", f"{each.tokens_per_joule:.3g}", tiers)
        power.add_row(each.experiment, *cells, *rest, f"{each.design_watts:,.0f}", f"{each.fed:,}")
    rack = found["spine"]
    line = f"NVL72: {rack['cables']:,} cables; optics in their place would take {rack['optics_kw']:.1f} kW."
    return [moved, copper, line, power]


def _table(title: str, first: str, *others: str) -> Table:
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column(first)
    for heading in others:
        shown.add_column(
            heading, justify="left" if heading in ("tier", "moving bits by tier, J") else "right"
        )
    return shown


def plot(file: Path, found: dict[str, Any]) -> None:
    """Draws reach and crossover by lane rate, and watts of a chip by experiment."""
    from mc.report.pictures.base import COLOURS, panel_title, picture, save

    def copper(axes: Any) -> None:
        rates = [each.gigabits for each in found["reaches"]]
        for name, label, colour in (
            ("reach", "passive copper reaches", COLOURS[0]),
            ("crossover", "and takes less than co-packaged optics", COLOURS[1]),
        ):
            value, low, high = zip(*(getattr(each, name) for each in found["reaches"]), strict=True)
            axes.plot(rates, value, "o-", color=colour, label=label)
            axes.fill_between(rates, low, high, color=colour, alpha=0.18, lw=0)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(rates, [f"{each:g}" for each in rates])
        axes.set_xlabel("lane rate, Gb/s")
        axes.set_ylabel("length, m")
        panel_title(axes, "copper and optics, with 90 % intervals")
        axes.legend(frameon=False)

    def ridge(axes: Any) -> None:
        moved = [each for each in found["ridges"] if each.tier == "scale-up"][::-1]
        names = [each.chips for each in moved]
        places = range(len(names))
        for offset, field, colour in ((0.27, "one_format", 0), (0.0, "formats", 2), (-0.27, "wires", 1)):
            label = {
                "one_format": "one format",
                "formats": "narrower formats",
                "wires": "wires, which take it back",
            }
            widths = [getattr(each, field) for each in moved]
            axes.barh(
                [place + offset for place in places], widths, 0.26, color=COLOURS[colour], label=label[field]
            )
        axes.set_yticks(list(places), names)
        axes.set_xlabel("factor")
        panel_title(axes, "why the ridge over scale-up links moved")
        axes.legend(frameon=False)

    save(file, picture([ridge, copper], width=6.4))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and prints it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.decisions",
        description="Ridge points, optics, energy, and what a gigawatt feeds.",
    )
    parser.add_argument("--quick", action="store_true", help="one experiment only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw ridge points and copper")
    options = parser.parse_args(arguments)
    found = study(QUICK if options.quick else EXPERIMENTS)
    if options.json:
        plain = {name: [asdict(each) for each in rows] for name, rows in found.items() if name != "spine"}
        print(json.dumps({**plain, "spine": found["spine"]}, indent=2))
    else:
        console = Console(width=190)
        for each in tables(found):
            console.print(each)
            console.print()
    if options.plot is not None:
        plot(options.plot, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
