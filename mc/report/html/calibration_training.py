"""The report of a transformer calibrated to steps at several numbers of ranks: what was measured, figures, forecasts."""

from collections.abc import Mapping
from typing import Any

from mc.report.calibration_training import (
    TrainingReport,
    forecast_rows,
    sentences,
    size_rows,
    training_from_json,
)
from mc.report.html.calibration import data_section, figures_section, known_from_data, parsed
from mc.report.html.honesty import plain_points
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.report.pictures.calibration_training import residual_panel, use_panel

_SAID = (
    "The intervals are about these steps under this model: what it leaves out (other jobs, the state of the machine on that day, "
    "what the software does that the plan does not say) is in none of them.",
    "Figures known from the prior alone are guesses of the file that was calibrated, not findings.",
)


def training_page(content: Mapping[str, Any], origin: str = "") -> Page:
    """The page of a fit of a transformer's steps, as `mc.results.calibration` has read it.

    Raises:
        InputError: it is damaged.
    """
    report = parsed(content, training_from_json)
    facts = [
        ("numbers of ranks", f"{len({each.ranks for each in report.sizes}):,}"),
        ("rows held out", f"{sum(each.held_out for each in report.sizes):,} of {len(report.sizes):,}"),
        known_from_data(report.figures),
    ]
    sections = [_sizes(report), figures_section(report.level, report.figures)]
    if report.forecasts:
        heading, rows = forecast_rows(report)
        title = f"{100 * report.level:.0f} % intervals of what the fit leaves unknown"
        sections.append(Section("Forecasts", tables=[Table(tuple(heading), rows, title)]))
    sections += [
        Section("How the fit ended", points=sentences(report)),
        plain_points(list(_SAID)),
        data_section(content),
        provenance(content),
    ]
    return Page("calibration", report.experiment, "", facts, sections, origin)


def _sizes(report: TrainingReport) -> Section:
    heading, rows = size_rows(report)
    pictures = [
        Picture(
            use_panel(report), "MFU over ranks: measured as dots, hollow where held out, fitted as lines."
        ),
        Picture(residual_panel(report), "What the fit leaves, by ranks."),
    ]
    return Section("Measured and fitted", pictures=pictures, tables=[Table(tuple(heading), rows)])
