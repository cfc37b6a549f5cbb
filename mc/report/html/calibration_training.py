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
from mc.report.html.fit_sections import figures_section, fit_sections, known_from_data, parsed
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.pictures.calibration_training import residual_panel, use_panel

_SAID = (
    "The intervals are about these steps under this model: what it leaves out (other jobs, the state of the machine on that day, "
    "what the software does that the plan does not say) is in none of them.",
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
    sections = fit_sections(
        content,
        _sizes(report),
        figures_section(report.level, report.figures),
        forecast_rows(report) if report.forecasts else None,
        report.level,
        sentences(report),
        _SAID,
    )
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
