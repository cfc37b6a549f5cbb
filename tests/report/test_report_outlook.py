"""What a report computes beside its run: what is drawn is what was found, and a page with all of it is sound."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from mc.cli.app import app
from mc.errors import InputError
from mc.report.pictures import outlook
from mc.report.pictures import trace as trace_picture
from mc.report.pictures.base import picture
from mc.results import Slice, Trace
from tests.report.pages import assert_sound

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


SMALL = """
name: small
cluster:
  name: small
  chip: {name: any, peak: {bf16: 100 TFLOP/s}}
  noise: {jitter: {family: exponential, mean: 1 ms}}
  tiers:
    - {name: node, link: {bandwidth: 100 GB/s, duplex: each, latency: 1 us}, fan_out: 4}
model: {name: any, compute: {time: 10 ms}, exchange: {collective: all-reduce, size: 100 MB}}
plan: {ranks: 4}
run: {samples: 200}
"""


def drawn(panel):
    """The axes of a panel, and its lines by their names in the legend."""
    figure = picture([panel])
    axes = figure.axes[0]
    return axes, {line.get_label(): line.get_xydata().T for line in axes.lines}


def test_the_slowest_of_n_is_drawn_in_its_unit_with_the_run_marked():
    found = SimpleNamespace(
        ranks=np.array([1.0, 10, 100]),
        median=np.array([1e-3, 2e-3, 3e-3]),
        p99=np.array([2e-3, 4e-3, 8e-3]),
        alone=1.1e-3,
        here=10,
    )
    axes, lines = drawn(outlook.slowest_panel(found))
    np.testing.assert_allclose(lines["median"], [[1, 10, 100], [1, 2, 3]])
    np.testing.assert_allclose(lines["p99"], [[1, 10, 100], [2, 4, 8]])
    np.testing.assert_allclose(lines["mean of one rank"][1], 1.1)
    assert axes.get_ylabel() == "computing of the slowest, ms"
    assert [text.get_text() for text in axes.texts] == ["this run: 10"]


def test_saturation_is_drawn_with_its_limits():
    found = SimpleNamespace(
        factors=np.array([1.0, 4, 16]),
        noisy=np.array([1.0, 2, 3]),
        quiet=np.array([1.0, 2.5, 4]),
        limits=(3.5, 20.0),
        step=1.0,
    )
    axes, lines = drawn(outlook.saturation_panel(found))
    np.testing.assert_allclose(lines["with noise, at most 3.5x"][1], [1, 2, 3])
    np.testing.assert_allclose(lines["without, at most 20x"][1], [1, 2.5, 4])
    np.testing.assert_allclose(lines["ideal"][1], [1, 4, 16])
    # A limit beyond the picture is not in it.
    assert sum(len(set(line.get_ydata())) == 1 for line in axes.lines) == 1


def test_the_map_has_a_bar_for_each_neighbourhood_that_is_alike():
    ways = [("ring", "LL")] * 2 + [("ring", "Simple")] * 3, [("tree", "none")] * 5
    rows = [SimpleNamespace(ranks=count, ways=each) for count, each in zip((8, 16), ways, strict=True)]
    found = SimpleNamespace(
        collective="all-reduce", sizes=2.0 ** np.arange(10, 15), rows=rows, here=(16, 2048.0)
    )
    axes, _ = drawn(outlook.choice_panel(found))
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), round(bar.get_y() + 0.46)) for bar in axes.patches]
    assert bars == [(10, 11.5, 0), (11.5, 14, 0), (10, 14, 1)]
    first, second, third = (bar.get_facecolor() for bar in axes.patches)
    assert first[:3] == second[:3] != third[:3]
    assert first[3] < second[3] == third[3] == 1
    names = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert names == ["ring, LL", "ring, Simple", "tree"]


def test_a_step_is_drawn_with_its_critical_path():
    critical = (
        Slice("F0", 0, "compute", 0.0, 0.4, "compute"),
        Slice("B0", 1, "compute", 0.4, 1.0, "compute"),
    )
    slices = (
        *critical,
        Slice("F1", 0, "compute", 0.40001, 0.6, "compute"),
        Slice("F0 to 1", 0, "sends", 0.4, 0.5, "communication"),
    )
    trace = Trace("x", "p99", 1.0, 1.0, 1.0, 0, 0, 0, "", {0: "stage 0", 1: "stage 1"}, slices, critical, "")
    axes, lines = drawn(trace_picture.gantt_panel(trace))
    np.testing.assert_allclose(lines["critical path"], [[0, 0.4, 0.4, 1.0], [0, 0, 1, 1]])
    bars = [sorted({x for x, _ in path.vertices}) for each in axes.collections for path in each.get_paths()]
    # Neighbours of one kind that hardly anything parts are one bar; messages are not drawn.
    np.testing.assert_allclose(bars, [[0, 0.6], [0.4, 1.0]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("small")
    (path / "small.yaml").write_text(SMALL)
    invoke("run", path / "small.yaml", "--out", path / "run")
    return path / "run"


def invoke(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done


def test_a_page_has_what_follows_from_the_configuration(folder):
    invoke("report", folder)
    text = (folder / "report.html").read_text(encoding="utf-8")
    seen = assert_sound(text)
    # Distribution, tail, waterfall; slowest, scaling, efficiency; faster chips; the map.
    assert seen.tags.count("svg") == 8
    table = next(each for each in seen.tables if each[0][0] == "ranks")
    parts = {row[0]: row for each in seen.tables for row in each}
    # 10 ms, the harmonic number of 4 in ms, and the exchange as the run had it.
    exchange = float(parts["bandwidth"][1]) + float(parts["latency floor"][1])
    (found,) = (float(row[1].removesuffix(" ms")) for row in table if row[0] == "4")
    assert found == pytest.approx(10 + 25 / 12 + exchange, abs=0.06)
    for labels in seen.svg_texts:
        assert any("ms" in each or "%" in each or "ranks" in each or "x" in each for each in labels)
    invoke("report", folder, "--stored", "--out", os.fspath(folder / "stored.html"))
    stored = assert_sound((folder / "stored.html").read_text(encoding="utf-8"))
    assert stored.tags.count("svg") == 3


def test_options_that_contradict_each_other_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="--elasticities: expected without `--stored`"):
        invoke("report", folder, "--stored", "--elasticities")
    with pytest.raises(InputError, match="--elasticities: expected the folder of one run; got two"):
        invoke("report", folder, folder, "--elasticities")
