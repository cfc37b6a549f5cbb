"""The report of an experiment calibrated to step times: distributions, residuals, figures, forecasts."""

from collections.abc import Mapping
from typing import Any

from mc.errors import InputError
from mc.report.calibration_steps import (
    StepsReport,
    forecast_rows,
    run_rows,
    sentences,
    steps_from_json,
)
from mc.report.calibration_steps_plot import distribution_panel, residual_panel
from mc.report.html.honesty import plain_points
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.units import format_quantity

_SAID = (
    "The intervals are about these steps under this model. What it leaves out (other jobs, the state of the machine on that day) is "
    "in none of them.",
    "Steps count as independent but for slow chips, which stay slow for a run; where steps depend on each other, intervals are too "
    "narrow.",
    "Figures known from the prior alone are guesses of the file that was calibrated, not findings.",
)


def steps_page(content: Mapping[str, Any], origin: str = "") -> Page:
    """The page of a fit of step times, as `mc.results.calibration` has read it.

    Raises:
        InputError: it is damaged.
    """
    try:
        report = steps_from_json(content["calibration"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"calibration.json: expected the figures of a calibration; got {error!r}") from None
    from_data = sum(each.known_from == "data" for each in report.figures)
    facts = [
        ("runs", f"{len(report.runs):,}"),
        ("steps", f"{sum(each.steps for each in report.runs):,}"),
        ("runs held out", f"{sum(each.held_out for each in report.runs):,}"),
        ("figures known from the data", f"{from_data} of {len(report.figures)}"),
    ]
    data = [(each["file"], each["sha256"]) for each in content.get("data", ())]
    sections = [_runs(report), _figures(report)]
    if report.forecasts:
        heading, rows = forecast_rows(report)
        title = f"{100 * report.level:.0f} % intervals of what the fit leaves unknown"
        sections.append(Section("Forecasts", tables=[Table(tuple(heading), rows, title)]))
    sections += [
        Section("How the fit ended", points=sentences(report)),
        plain_points(list(_SAID)),
        Section("Data", tables=[Table(("file", "SHA-256"), data, words=True)]),
        provenance(content),
    ]
    return Page("calibration", report.experiment, "", facts, sections, origin)


def _runs(report: StepsReport) -> Section:
    heading, rows = run_rows(report)
    pictures = []
    if any(each.curve for each in report.runs):
        pictures = [
            Picture(
                distribution_panel(report),
                "Share of steps done by a time: measured as dots, fitted as lines.",
            ),
            Picture(residual_panel(report), "What the fit leaves, by quantile."),
        ]
    return Section("Measured and fitted", pictures=pictures, tables=[Table(tuple(heading), rows)])


def _figures(report: StepsReport) -> Section:
    rows = [
        (
            each.name,
            *(
                format_quantity(value, each.dimension, digits=3)
                for value in (each.prior, each.value, each.low, each.high)
            ),
            each.known_from,
        )
        for each in report.figures
    ]
    level = f"{100 * report.level:.0f} %"
    return Section(
        "Figures", tables=[Table(("figure", "prior", "fitted", f"{level} from", "to", "known from"), rows)]
    )
