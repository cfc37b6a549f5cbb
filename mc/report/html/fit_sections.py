"""What pages of all fits have in common: figures, data, and sections in their order."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mc.errors import InputError
from mc.report.fit_reports import FittedFigure
from mc.report.html.honesty import plain_points
from mc.report.html.page import Section, Table
from mc.report.html.provenance import provenance
from mc.units import format_quantity

_Report = TypeVar("_Report")
# Under how far to trust any fit.
GUESSES = "Figures known from the prior alone are guesses of the file that was calibrated, not findings."


def parsed(content: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], _Report]) -> _Report:
    """The figures of a fit of any kind.

    Raises:
        InputError: they are damaged.
    """
    try:
        return parse(content["calibration"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"calibration.json: expected the figures of a calibration; got {error!r}") from None


def figures_section(level: float, figures: Sequence[FittedFigure]) -> Section:
    """What was fitted, with intervals and where it is known from."""
    rows = [
        (
            each.name,
            *(_quantity(each, value) for value in (each.prior, each.value, each.low, each.high)),
            each.known_from,
        )
        for each in figures
    ]
    heading = ("figure", "prior", "fitted", f"{100 * level:.0f} % from", "to", "known from")
    return Section("Figures", tables=[Table(heading, rows)])


def known_from_data(figures: Sequence[FittedFigure]) -> tuple[str, str]:
    """A fact: how many figures the data tell."""
    return (
        "figures known from the data",
        f"{sum(each.known_from == 'data' for each in figures)} of {len(figures)}",
    )


def data_section(content: Mapping[str, Any]) -> Section:
    """The files that were fitted to."""
    data = [(each["file"], each["sha256"]) for each in content.get("data", ())]
    return Section("Data", tables=[Table(("file", "SHA-256"), data, words=True)])


def _quantity(figure: FittedFigure, value: float) -> str:
    return format_quantity(value, figure.dimension, digits=3) if math.isfinite(value) else "unbounded"


def fit_sections(
    content: Mapping[str, Any],
    measured: Section,
    figures: Section,
    forecasts: tuple[Sequence[str], Sequence[tuple[str, ...]]] | None,
    level: float,
    ended: Sequence[str],
    said: Sequence[str],
) -> list[Section]:
    """The sections of a fit of steps, in their order.

    Args:
        content: as it was read.
        measured: beside fitted.
        figures: that were fitted.
        forecasts: a heading and rows; None if there are none.
        level: of their intervals.
        ended: how the fit did, in sentences.
        said: how far to trust it, in sentences.
    """
    sections = [measured, figures]
    if forecasts is not None:
        heading, rows = forecasts
        title = f"{100 * level:.0f} % intervals of what the fit leaves unknown"
        sections.append(Section("Forecasts", tables=[Table(tuple(heading), rows, title)]))
    return [
        *sections,
        Section("How the fit ended", points=ended),
        plain_points([*said, GUESSES]),
        data_section(content),
        provenance(content),
    ]
