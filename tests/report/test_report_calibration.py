"""The report of a calibration, from a stored one; and the way into the folder and out of it."""

import hashlib
import json

import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from mc.report.calibration import (
    CalibrationReport,
    FittedCurve,
    HeldOutDecade,
    HeldOutScore,
    calibration_from_json,
    calibration_json,
)
from mc.report.fit_reports import Ending, FittedFigure
from mc.results.calibration import check_calibration_folder, read_calibration, write_calibration
from mc.units import Dimension
from tests.report.pages import assert_sound

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

SIZES = (1024.0, 2.0**20, 2.0**30)


SCORE = HeldOutScore(0.035, 0.067, 0.13, 0.17, "", 2, [HeldOutDecade(1e3, 2, 0.035, 0.067)])

ENDING = {"losses": [1.5, 2.5], "gradient": 1e-6, "steps": 12, "outcome": "flat", "agreeing": 2}


def example(name="pod", held_out=SCORE) -> CalibrationReport:
    curves = [
        FittedCurve(
            f"{name} all-reduce, {ranks} ranks",
            SIZES,
            (1e-5, 1e-4, 1e-2),
            (2e-5, 2e-4, 2e-2),
            (1.1e-5, 0.9e-4, 1e-2),
            1.875,
        )
        for ranks in (16, 32)
    ]
    figures = [
        FittedFigure(
            "bandwidth of node",
            ("tiers.0.link.bandwidth",),
            Dimension.BANDWIDTH,
            1e11,
            8e10,
            9e10,
            1e11,
            "data",
        ),
        FittedFigure("latency", ("tiers.0.link.latency",), Dimension.TIME, 1e-6, 5e-7, 1e-6, 2e-6, "prior"),
    ]
    return CalibrationReport(name, 0.9, figures, curves, 0.04, held_out, ["latency stays free"], **ENDING)


@pytest.fixture
def folder(tmp_path):
    log = tmp_path / "nccl.log"
    log.write_text("measured\n")
    check_calibration_folder(tmp_path / "fit")
    write_calibration(
        tmp_path / "fit", calibration_json(example()), "tailstep calibrate x", "name: pod\n", [str(log)]
    )
    return tmp_path / "fit"


def report(folder):
    done = CliRunner().invoke(app, ["report", str(folder)])
    if done.exception is not None:
        raise done.exception
    return assert_sound((folder / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("held_out", [None, SCORE, HeldOutScore(0.1, 0.2, None, None, "ranks > 8", 24)])
def test_json_and_back(held_out):
    once = json.loads(json.dumps(calibration_json(example(held_out=held_out))))
    assert json.loads(json.dumps(calibration_json(calibration_from_json(once)))) == once


def test_the_page_has_measurements_figures_and_scores(folder):
    seen = report(folder)
    assert seen.tags.count("svg") == 3
    decades, every, figures, data = seen.tables[:4]
    assert decades[1] == ["from 1 kB", "2", "100.0 %", "10.0 %", "+10.0 %", "2", "3.5 %", "6.7 %"]
    assert len(every) == 1 + 6
    # 1 MiB in 0.1 ms is an algorithm bandwidth of 10.49 GB/s.
    assert every[2][1:] == ["1 MiB", "100 us", "200 us", "90.0 us", "-10.0 %", "19.66"]
    assert figures[1] == ["bandwidth of node", "100 GB/s", "90 GB/s", "80 GB/s", "100 GB/s", "data"]
    assert data[1][1] == hashlib.sha256(b"measured\n").hexdigest()
    everything = "".join(seen.texts)
    for each in (
        "missed by 3.5 % in the median",
        "latency stays free",
        "name: pod",
        "tailstep calibrate x",
        "flat",
    ):
        assert each in everything
    labels = [text for texts in seen.svg_texts for text in texts]
    for each in ("message size", "busbw, GB/s", "fitted / measured - 1, %"):
        assert each in labels
    # Times have their units at the ticks.
    assert "1 ms" in labels


def test_labels_of_logs_stay_text(tmp_path):
    hostile = "<script>alert(1)</script>$x^"
    check_calibration_folder(tmp_path / "fit")
    write_calibration(tmp_path / "fit", calibration_json(example(hostile)), hostile, hostile, [])
    assert "".join(report(tmp_path / "fit").texts).count(hostile) >= 4


def test_a_foreign_folder_is_refused_before_the_fit(tmp_path, folder):
    check_calibration_folder(folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"got one with other files in it \(thesis\.tex\)"):
        check_calibration_folder(tmp_path / "other")
    with pytest.raises(InputError, match="expected a folder for the results"):
        check_calibration_folder(tmp_path / "other" / "thesis.tex")


def test_a_damaged_calibration_is_said(folder):
    content = read_calibration(folder)
    del content["calibration"]["figures"]
    (folder / "calibration.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"calibration\.json: expected the figures of a calibration"):
        report(folder)


def test_starts_that_lead_nowhere_are_counted_and_no_losses():
    said = Ending(**{**ENDING, "losses": [-3.0, -2.0, 1e300]}).how_it_ended()
    assert "loss -3 to -2 over 3 starts" in said
    assert "1 where the data are not possible" in said
