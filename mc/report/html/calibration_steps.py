"""The report of an experiment calibrated to step times: distributions, residuals, figures, forecasts."""

from collections.abc import Mapping
from typing import Any

from mc.report.calibration_steps import (
    StepsReport,
    forecast_rows,
    has_sizes,
    run_rows,
    sentences,
    size_rows,
    steps_from_json,
)
from mc.report.html.fit_sections import figures_section, fit_sections, known_from_data, parsed
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.pictures.calibration_sizes import size_panel
from mc.report.pictures.calibration_steps import distribution_panel, residual_panel

_SAID = (
    "The intervals are about these steps under this model. What it leaves out (other jobs, the state of the machine on that day) is "
    "in none of them.",
    "Steps count as independent but for slow chips, which stay slow for a run; where steps depend on each other, intervals are too "
    "narrow.",
)


def steps_page(content: Mapping[str, Any], origin: str = "") -> Page:
    """The page of a fit of step times, as `mc.results.calibration` has read it.

    Raises:
        InputError: it is damaged.
    """
    report = parsed(content, steps_from_json)
    facts = [
        ("runs", f"{len(report.runs):,}"),
        ("steps", f"{sum(each.steps for each in report.runs):,}"),
        ("runs held out", f"{sum(each.held_out for each in report.runs):,}"),
        known_from_data(report.figures),
    ]
    sections = fit_sections(
        content,
        _runs(report),
        figures_section(report.level, report.figures),
        forecast_rows(report) if report.forecasts else None,
        report.level,
        sentences(report),
        _SAID,
    )
    return Page("calibration", report.experiment, "", facts, sections, origin)


def _runs(report: StepsReport) -> Section:
    heading, rows = run_rows(report)
    pictures = [
        Picture(
            distribution_panel(report), "Share of steps done by a time: measured as dots, fitted as lines."
        ),
        Picture(residual_panel(report), "What the fit leaves, by quantile."),
    ]
    tables = [Table(tuple(heading), rows)]
    if has_sizes(report):
        pictures.append(
            Picture(
                size_panel(report),
                "Median and p99 by number of ranks: fitted over measured, hollow where held out.",
            )
        )
        heading, rows = size_rows(report)
        tables.append(Table(tuple(heading), rows, "Fitted over measured, by number of ranks"))
    return Section("Measured and fitted", pictures=pictures, tables=tables)
