"""Cells without noise: arrays give what one evaluation at a time gives, however a sweep is laid out."""

import numpy as np
import pytest

from mc.config import NoiseConfig
from mc.config.load_sweep import load_sweep
from mc.experiment import run
from mc.sweep.layout import groups_by_layout, layout_of
from mc.sweep.leaves import groups_of
from mc.sweep.quiet_table import quiet_table
from tests.sweep.test_sweep_files import EXPERIMENT

BLOCK = """\
  samples: 0
  grid:
    plan.ranks: [2, 8, 24, 512]
    plan.algorithm: [auto, hierarchical]
    model.exchange.size: [1 kB, 100 MB]
    cluster.tiers.1.link.latency: [1 us, 40 us]
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    path = tmp_path_factory.mktemp("quiet") / "sweep.yaml"
    path.write_text(EXPERIMENT + BLOCK)
    return load_sweep(path)


@pytest.fixture(scope="module")
def table(sweep):
    return quiet_table(sweep, 0, len(sweep), lambda text: None)


@pytest.mark.parametrize("cell", [0, 17, 30])
def test_a_cell_is_what_a_run_of_it_without_noise_is(sweep, table, cell):
    config = sweep.experiment(cell)
    cluster = config.cluster.model_copy(update={"noise": NoiseConfig()})
    once = config.run.model_copy(update={"samples": 1})
    wanted = run(config.model_copy(update={"cluster": cluster, "run": once}))
    row = table.slice(cell, 1).to_pylist()[0]
    assert row["step_time_mean_s"] == pytest.approx(float(wanted.samples[0, 0]), rel=1e-6)
    for name in ("bandwidth", "latency_floor"):
        assert row[f"{name}_s"] == pytest.approx(float(wanted.parts[name]), rel=1e-6)


def test_each_cell_takes_its_own_fastest_algorithm(table):
    rows = [row for row in table.to_pylist() if row["plan.algorithm"] == "auto" and row["ranks"] == 512]
    assert rows[0]["algorithms"] != rows[-1]["algorithms"]
    assert all(row["algorithms"] for row in table.to_pylist() if row["status"] == "ok")


def test_what_cannot_be_is_a_failed_cell_that_says_why(sweep, table):
    failed = [row for row in table.to_pylist() if row["status"] == "failed"]
    # Two and eight ranks lie on one tier, so there is nothing to divide.
    assert {(row["ranks"] or row["plan.ranks"], row["plan.algorithm"]) for row in failed} == {
        (2, "hierarchical"),
        (8, "hierarchical"),
    }
    assert all("hierarchical" in row["error"] for row in failed)
    del sweep


def test_the_layout_finds_what_validating_each_cell_finds(sweep):
    assert [each is not None for each in layout_of(sweep)] == [False, False, True, True]
    laid_out, alone = groups_by_layout(sweep, 0, len(sweep))
    assert not alone
    one_by_one = groups_of({cell: sweep.experiment(cell) for cell in range(len(sweep))})
    assert len(laid_out) == len(one_by_one) == 8
    for found, wanted in zip(laid_out, one_by_one, strict=True):
        assert found.template == wanted.template
        assert found.cells.tolist() == wanted.cells.tolist()
        # The switch's latency is the link's where it is not given: one key, two floats.
        columns = dict(zip(found.paths, found.values.T, strict=True))
        assert len(columns) == 3
        for path, column in zip(wanted.paths, wanted.values.T, strict=True):
            np.testing.assert_array_equal(columns[path], column)


def test_any_part_of_a_sweep_has_the_same_rows(sweep, table):
    assert quiet_table(sweep, 5, 21, lambda text: None).to_pylist() == table.slice(5, 16).to_pylist()
