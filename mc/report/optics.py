"""The report of `tailstep optics`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mc.catalog.media import media
from mc.goodput import Failures, goodput
from mc.optics import Interval, Medium, interruptions_per_day, nvl72, passive_reach

# Of a job whose links fail, for what that costs: assumed, as in the shipped Llama 3 experiment.
_RESTART, _WRITE = 600.0, 10.0
# The module that would replace NVL72's copper, and what NVIDIA says it would have taken.
_REPLACING, _AT = "retimed-pluggable", 200e9
_SAVED = 20e3

Compared = Mapping[float, Sequence[Medium]]


def optics_json(found: Compared, chips: int, links: float) -> dict[str, Any]:
    """All of it as plain data, SI units in the keys."""
    return {
        "lanes": [
            {
                "rate_bits_per_s": rate,
                "passive_reach_m": _interval(passive_reach(rate)),
                "passive_reach_thin_wire_m": _interval(passive_reach(rate, thin=True)),
                "published_reach_m": _published(rate),
                "media": [_medium_json(each, chips, links) for each in compared],
            }
            for rate, compared in found.items()
        ],
        "nvl72": _spine(),
        "chips": chips,
        "links_per_chip": links,
    }


def _medium_json(medium: Medium, chips: int, links: float) -> dict[str, Any]:
    mtbf = medium.mtbf.value
    return {
        "id": medium.id,
        "length_m": medium.length,
        "energy_j_per_bit": None if medium.energy is None else _interval(medium.energy),
        "energy_is_estimate": medium.is_estimate,
        "reach_m": _interval(medium.reach),
        "copper_up_to_m": None if medium.crossover is None else _interval(medium.crossover),
        "mtbf_s": _interval(medium.mtbf),
        "interruptions_per_day": interruptions_per_day(chips * links, mtbf),
        "effective_ratio": _effective(chips, links, mtbf),
    }


def _effective(chips: int, links: float, mtbf: float) -> float:
    """The share of time that counts in a job that links alone interrupt."""
    return goodput(chips, Failures(mtbf / links, _RESTART, _WRITE)).effective_ratio


def _interval(interval: Interval) -> dict[str, float]:
    return interval._asdict()


def _published(rate: float) -> dict[str, Any] | None:
    (lane,) = [each for each in media().lanes if each.rate == rate]
    return None if lane.published is None else lane.published.model_dump()


def _spine() -> dict[str, float]:
    spine = nvl72()
    (module,) = [each for each in media().media if each.id == _REPLACING]
    end = module.energy_of_end(_AT).value
    return {
        "cables": spine.cables,
        "pairs_per_chip": spine.pairs_per_chip,
        "rate_bits_per_s": spine.rate,
        "energy_of_end_j_per_bit": end,
        "optics_w": spine.power(end),
        "implied_by_20_kw_j_per_bit": spine.energy_of_end(_SAVED),
    }


def optics_table(found: Compared, chips: int, links: float) -> RenderableType:
    """The same for a terminal."""
    spine = _spine()
    text = (
        f"NVL72: {spine['cables']:,} cables of one pair; with modules of {spine['energy_of_end_j_per_bit'] * 1e12:.4g} pJ/bit at "
        f"each end their {spine['rate_bits_per_s'] / 1e12:.4g} Tb/s would take {spine['optics_w'] / 1e3:.3g} kW."
    )
    return Group(
        _reaches(list(found)),
        Text(),
        *(part for rate, compared in found.items() for part in (_media(rate, compared), Text())),
        _failing(next(iter(found.values())), chips, links),
        Text(),
        Text(text),
        Text("Intervals hold 90 % of what the ranges of the figures allow; ~ marks estimates.", style="dim"),
    )


def _reaches(rates: Sequence[float]) -> RenderableType:
    table = _table("lane")
    for name in ("26 AWG, m", "30 AWG, m", "published, m"):
        table.add_column(name, justify="right", no_wrap=True)
    for rate in rates:
        published = _published(rate)
        table.add_row(
            f"{rate / 1e9:g} Gb/s",
            _text(passive_reach(rate)),
            _text(passive_reach(rate, thin=True)),
            "-" if published is None else f"{published['least']:g} to {published['most']:g}",
        )
    return Group(Text("How far passive copper reaches", style="bold"), table)


def _media(rate: float, compared: Sequence[Medium]) -> RenderableType:
    table = _table("medium")
    for name in ("pJ/bit, both ends", "reach, m", "copper up to, m"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in compared:
        mark = "~" if each.is_estimate else ""
        table.add_row(
            each.name,
            "does not reach" if each.energy is None else mark + _text(each.energy, 1e-12),
            _text(each.reach),
            "" if each.crossover is None else _text(each.crossover),
        )
    title = f"{rate / 1e9:g} Gb/s a lane, links of {compared[0].length:g} m"
    return Group(Text(title, style="bold"), table)


def _failing(compared: Sequence[Medium], chips: int, links: float) -> RenderableType:
    table = _table("links of")
    for name in ("a failure in, hours", "interruptions a day", "time that counts"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in compared:
        mtbf = each.mtbf.value
        table.add_row(
            each.name,
            f"{mtbf / 3600:,.3g}",
            f"{interruptions_per_day(chips * links, mtbf):.3g}",
            f"{100 * _effective(chips, links, mtbf):.2f} %",
        )
    title = f"{chips:,} chips with {links:g} links each that a job cannot do without"
    return Group(Text(title, style="bold"), table)


def _text(interval: Interval, unit: float = 1.0) -> str:
    value, low, high = (f"{each / unit:.3g}" for each in interval)
    return value if low == high else f"{value} ({low} to {high})"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
