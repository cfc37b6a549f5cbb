"""Reports of runs and of two runs: sound HTML without scripts and network, the numbers of the results, nobody's markup."""

import dataclasses
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from mc.results import read_run, write_run
from tests.report.pages import assert_sound, read
from tests.results.example import example_result

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

HOSTILE = (
    "<script>alert(1)</script>",
    '"onload=alert(1) x="',
    "</pre></details><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{",
    "]]></style><svg onload=alert(1)>",
    "&lt;b&gt; &amp",
)
CONTROL = "\x00\x1b[31m\u202e\ud800"


def report(*arguments) -> str:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    write_run(path, example_result(realisations=10, steps=200))
    report(path)
    return path


@pytest.fixture(scope="module")
def text(folder) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_is_sound(text):
    seen = assert_sound(text)
    assert seen.tags.count("svg") == 3
    assert seen.tags.count("figcaption") == 3


def test_the_reader_of_pages_finds_mistakes():
    """Negative controls of the tests' own reader."""
    assert read("<p><b>x</p></b>").problems
    assert read('<p id="a"></p><p id="a"></p>').problems
    assert read('<a href="#b">x</a>').problems
    assert read("<p>").problems
    for bad in (
        "<script></script>",
        '<p onclick="x"></p>',
        '<a href="//elsewhere"></a>',
        '<p style="background: url(x.png)"></p>',
    ):
        with pytest.raises(AssertionError):
            assert_sound(f'<!DOCTYPE html>@media (prefers-color-scheme: dark)name="viewport"{bad}')


def test_the_tables_have_the_numbers_of_the_results(folder, text):
    run = read_run(folder).result
    tables = read(text).tables
    rows = {row[0]: row for table in tables[:2] for row in table}
    unit = {"ms": 1e-3, "us": 1e-6}[tables[0][0][1]]
    for name, label in (("mean", "mean"), ("p50", "p50 (median)"), ("p99", "p99"), ("p99_9", "p99.9")):
        found = getattr(run.estimates, name)
        shown = rows[label]
        decimals = len(shown[1].partition(".")[2])
        assert float(shown[1]) == pytest.approx(found.value / unit, abs=0.51 * 10**-decimals)
        low, _, high = shown[2].partition(" to ")
        assert float(low) == pytest.approx(found.low / unit, abs=0.51 * 10**-decimals)
        if np.isinf(found.high):
            assert high == "unbounded"
        else:
            assert float(high) == pytest.approx(found.high / unit, abs=0.51 * 10**-decimals)
    for part in run.waterfall.parts:
        shown = rows[part.name.replace("_", " ")]
        assert float(shown[1]) == pytest.approx(part.time.value / unit, rel=1e-2)
        assert float(shown[3].removesuffix(" %")) == pytest.approx(100 * part.share, abs=0.051)
    shares = [float(rows[part.name.replace("_", " ")][3].removesuffix(" %")) for part in run.waterfall.parts]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_configuration_provenance_and_honesty_are_there(folder, text):
    manifest = read_run(folder).manifest
    everything = "".join(read(text).texts)
    for each in (
        manifest["config"],
        manifest["command"],
        manifest["config_hash"],
        manifest["software"]["python"],
    ):
        assert each in everything
    for each in (
        "How far to trust it",
        "Ranks are independent",
        "Tested range",
        "sampling error of",
        "not described",
    ):
        assert each in everything
    # Ten realisations: what is rarer than 3/10 may not have occurred.
    assert "rarer than 30 %" in everything


def test_every_axis_says_its_unit(text):
    """Of each picture the labels: a unit after a comma, or a share, which has none."""
    labels = [
        [each for each in texts if each.startswith(("step time", "steps that", "share of", "mean of"))]
        for texts in read(text).svg_texts
    ]
    assert [sorted(each) for each in labels] == [
        ["step time, us", "steps that take no longer, %"],
        ["share of steps that take longer", "step time, us"],
        ["mean of a step, us"],
    ]


def test_colours_follow_the_scheme(text):
    """No colour in a picture but by a property that both schemes define."""
    body = text[text.index("<body>") :]
    without = [each.partition(")")[0] for each in body.split("var(")[1:]]
    names = {each.partition(",")[0] for each in without}
    style = text[: text.index("<body>")]
    for name in names:
        assert style.count(f"{name}:") == 2, name
    for fallback in without:
        body = body.replace(f"var({fallback})", "")
    assert "fill: #" not in body
    assert "stroke: #" not in body


def test_the_same_folder_gives_the_same_bytes(folder, text, tmp_path):
    report(folder, "--out", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


def hostile_result(text: str):
    base = example_result(realisations=2, steps=20)
    names = dict(zip(base.parts, [f"{text}{place}" for place in range(5)], strict=True))
    parts = {names[key]: value for key, value in base.parts.items()}
    waterfall = dataclasses.replace(
        base.waterfall,
        parts=tuple(dataclasses.replace(part, name=names[part.name]) for part in base.waterfall.parts),
    )
    return dataclasses.replace(
        base,
        name=text,
        description=text,
        cluster_name=text,
        tiers=(text,),
        method=text,
        config_hash=text,
        resolved_yaml=f"name: {text!r}\ncluster: {{name: x}}\n",
        command=text,
        machine=dataclasses.replace(base.machine, backend=text, device_kind=text),
        parts=parts,
        waterfall=waterfall,
    )


@pytest.mark.parametrize("hostile", [" ".join(HOSTILE), CONTROL], ids=["markup", "control characters"])
def test_strings_from_files_stay_strings(hostile):
    from mc.report.html.page import render
    from mc.report.html.run import run_page
    from mc.results import RunRecord
    from mc.results.manifest import manifest_of

    result = hostile_result(hostile)
    record = RunRecord(result, manifest_of(result))
    text = render(run_page(record, origin=hostile))
    assert_sound(text.encode("utf-8").decode("utf-8"))
    everything = "".join(read(text).texts)
    if hostile.isprintable():
        # Name, description, cluster, tier, method, hash, command, machine: shown as they are.
        assert everything.count(hostile) >= 8


def test_two_runs_are_compared(folder, tmp_path):
    other = tmp_path / "other"
    write_run(
        other,
        example_result(
            realisations=10, steps=200, name="other", resolved_yaml="name: other\nrun:\n  seed: 8\n", seed=8
        ),
    )
    report(folder, other)
    seen = assert_sound((other / "comparison.html").read_text(encoding="utf-8"))
    rows = [row for table in seen.tables for row in table]
    assert ["run.seed", "7", "8"] in rows
    # Of the same draws: nothing differs.
    mean = next(row for row in rows if row[0] == "mean")
    assert float(mean[3]) == 0.0
    assert seen.tags.count("svg") >= 3


def test_it_is_there_whole_or_not_at_all(folder, text, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(
            InputError, match=r"report\.html: expected a place that can be written to; got: No space"
        ):
            report(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        CliRunner().invoke(app, ["report", str(folder)])
    assert (folder / "report.html").read_text(encoding="utf-8") == text
    assert sorted(each.name for each in folder.iterdir()) == [
        "manifest.json",
        "report.html",
        "steps.parquet",
        "summary.parquet",
    ]


def test_a_run_may_be_repeated_into_a_folder_with_a_report(folder):
    write_run(folder, example_result(realisations=10, steps=200))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: expected the folder of a run, a sweep or a calibration"),
        (["empty"], "empty: expected the folder of a run, a sweep or a calibration; got"),
        (
            ["file.yaml"],
            "file.yaml: expected the folder of a run, a sweep or a calibration; `tailstep run FILE --out DIR`",
        ),
        (["run", "--out", "x.pdf"], "--out: expected a file that ends in .html; got x.pdf"),
        (["run", "--out", "no/x.html"], "--out: there is no folder no"),
        (["run", "empty"], "empty: expected a folder with a finished run"),
    ],
)
def test_what_cannot_be_reported_is_said(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.yaml").write_text("")
    write_run("run", example_result())
    with pytest.raises(InputError) as error:
        report(*arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_what_is_not_installed_is_named(package, folder, monkeypatch):
    from mc.cli import report as module

    monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(InputError, match=r"pip install matplotlib Jinja2"):
        report(folder)
