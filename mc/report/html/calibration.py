"""The report of a calibration: measured and fitted over sizes, residuals, every figure with what is known of it."""

from collections.abc import Mapping
from typing import Any

from mc.report.calibration import (
    CalibrationReport,
    calibration_from_json,
    decade_rows,
    ending,
)
from mc.report.html.fit_sections import GUESSES, data_section, figures_section, known_from_data, parsed
from mc.report.html.honesty import plain_points
from mc.report.html.page import Page, Picture, Section, Table
from mc.report.html.provenance import provenance
from mc.report.pictures.axes import size_text
from mc.report.pictures.calibration import bandwidth_panel, error_panel, time_panel
from mc.report.times import duration

_SAID = (
    "The intervals are about these data under this model: links, protocols and algorithms as the cluster describes them. What the "
    "model leaves out (routes, other jobs, the state of the machine on that day) is in none of them.",
    "Beyond the measured sizes and numbers of ranks the cluster is a forecast; published systems were missed there by more than on "
    "sizes held out (docs/calibration.md).",
    GUESSES,
)


def calibration_page(content: Mapping[str, Any], origin: str = "") -> Page:
    """The page of a calibration, as `mc.results.calibration` has read it.

    Raises:
        InputError: it is damaged.
    """
    report = parsed(content, calibration_from_json)
    rows = sum(len(curve.sizes) for curve in report.curves)
    facts = [("curves", f"{len(report.curves):,}"), ("measurements", f"{rows:,}")]
    if report.held_out is not None:
        what = "what was held out" if report.held_out.rule else "sizes held out"
        facts.append((f"error on {what}, median", f"{100 * report.held_out.median:.1f} %"))
        if report.held_out.line_median is not None:
            facts.append(("of a plain line", f"{100 * report.held_out.line_median:.1f} %"))
    facts.append(("scatter around the fit", f"{100 * report.scatter:.1f} %"))
    facts.append(known_from_data(report.figures))
    return Page(
        "calibration",
        report.cluster,
        "",
        facts,
        [
            _curves(report),
            figures_section(report.level, report.figures),
            Section("How the fit ended", text=_ending(report), points=report.known),
            plain_points([_held_out(report), *_SAID]),
            data_section(content),
            provenance(content),
        ],
        origin,
    )


def _curves(report: CalibrationReport) -> Section:
    rows = [
        (
            curve.label,
            size_text(size),
            duration(measured),
            duration(prior),
            duration(predicted),
            f"{100 * (predicted / measured - 1):+.1f} %",
            f"{curve.bus_factor * size / measured / 1e9:.4g}",
        )
        for curve in report.curves
        for size, measured, prior, predicted in zip(
            curve.sizes, curve.measured, curve.prior, curve.predicted, strict=True
        )
    ]
    heading = ("curve", "size", "measured", "before", "fitted", "error", "busbw measured, GB/s")
    decades, medians = decade_rows(report)
    return Section(
        "Measured and fitted",
        pictures=[
            Picture(
                time_panel(report),
                "Time against size: measured as dots, before the fit dotted, after it as lines.",
            ),
            Picture(bandwidth_panel(report), "Bus bandwidth against size, likewise."),
            Picture(error_panel(report), "What the fit leaves; of what it had not seen hollow dots."),
        ],
        tables=[
            Table(decades, medians, "|predicted/measured - 1|, medians by size"),
            Table(heading, rows, "Every measurement"),
        ],
    )


def _ending(report: CalibrationReport) -> list[str]:
    told = [str(each) for each in (report.second_network, report.sampled) if each is not None]
    return [*told, ending(report)]


def _held_out(report: CalibrationReport) -> str:
    score = report.held_out
    if score is None:
        return "No sizes were held out: how far others would be missed is not known."
    what = (
        f"The {score.rows} rows held out by `{score.rule}`"
        if score.rule
        else "Sizes that the fit had not seen"
    )
    found = (
        f"{what} are missed by {100 * score.median:.1f} % in the median ({100 * score.mean:.1f} % on average)"
    )
    if score.line_median is None or score.line_mean is None:
        return f"{found}."
    return (
        f"{found}, by a plain line of latency and bandwidth by {100 * score.line_median:.1f} % "
        f"({100 * score.line_mean:.1f} %)."
    )
