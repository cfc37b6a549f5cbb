"""Cells with noise: one kernel for many, the numbers of a run, and the same ones whoever draws them with whom."""

import numpy as np
import pytest

from mc.config.load_sweep import load_sweep
from mc.experiment import run
from mc.sweep import batch as batch_module
from mc.sweep.batch import batches_of, config_of, evaluate
from mc.sweep.sweep import run_one
from tests.sweep.test_sweep_files import EXPERIMENT

NOISY = EXPERIMENT.replace(
    "fan_out: 64}", "fan_out: 64, jitter: {family: exponential, mean: 20 us}}"
).replace("sigma: 2 %}", "sigma: 2 %}\n    slow_chips: {fraction: 5 %, slowdown: 1.5}")
BLOCK = """\
  grid:
    plan.ranks: [2, 8, 24, 512]
    cluster.noise.spread.sigma: [1 %, 5 %]
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    path = tmp_path_factory.mktemp("drawn") / "sweep.yaml"
    path.write_text(NOISY.replace("samples: 200", "samples: 600, realisations: 6") + BLOCK)
    return load_sweep(path)


@pytest.fixture(scope="module")
def evaluated(sweep):
    said = []
    (batch,) = batches_of(sweep)
    return evaluate(sweep, batch, log=said.append), said


def test_cells_of_all_sizes_share_one_kernel(evaluated):
    table, said = evaluated
    assert said == ["1 kernel for 8 cells: they differ in numbers alone"]
    assert table.column("status").to_pylist() == ["ok"] * 8


@pytest.mark.parametrize("cell", [0, 7])
def test_a_cell_has_the_numbers_of_a_run(sweep, evaluated, cell):
    row = evaluated[0].slice(cell, 1).to_pylist()[0]
    wanted = run(config_of(sweep, cell))
    assert row["realisations"] == wanted.realisations == 6
    assert row["samples"] == wanted.samples.size
    # Sample by sample up to float32: so are the mean and the largest.
    assert row["step_time_mean_s"] == pytest.approx(wanted.estimates.mean.value, rel=1e-6)
    assert row["top_s"] == pytest.approx(
        np.sort(wanted.samples, axis=None)[::-1][: len(row["top_s"])], rel=2e-6
    )
    assert row["straggler_wait_s"] == pytest.approx(float(wanted.parts["straggler_wait"].mean()), rel=1e-4)
    # Intervals of the histogram contain those of the samples, and are hardly wider.
    for name, estimate in wanted.estimates.items():
        for end, bound in (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high)):
            found = row[f"step_time_{name}_s{end}"]
            if np.isfinite(bound):
                assert found == pytest.approx(bound, rel=1.1 * 2**-10 if name != "mean" else 1e-4)


def test_one_cell_alone_has_the_same_row_to_the_last_bit(sweep, evaluated):
    for cell in (3, 6):
        assert run_one(sweep, cell).to_pylist() == evaluated[0].slice(cell, 1).to_pylist()


def test_common_random_numbers_sharpen_differences(evaluated):
    rows = evaluated[0].to_pylist()
    reductions = [row["variance_reduction"] for row in rows[1:]]
    assert rows[0]["variance_reduction"] is None
    # Two spreads of one cluster move together.
    assert reductions[0] > 1.5
    assert all(each > 0.3 for each in reductions)


def test_steps_are_added_until_the_interval_is_narrow_enough(tmp_path):
    path = tmp_path / "sweep.yaml"
    block = "  samples: 200\n  precision: 0.05% on p99\n  budget: 6400\n"
    block += "  zip: {plan.ranks: [2, 4], cluster.noise.spread.sigma: [0.1 %, 5 %]}\n"
    path.write_text(EXPERIMENT + block)
    sweep = load_sweep(path)
    (batch,) = batches_of(sweep)
    calm, wild = evaluate(sweep, batch).to_pylist()
    assert 200 < calm["samples"] < 6400
    width = calm["step_time_p99_s_high"] - calm["step_time_p99_s_low"]
    assert width / 2 <= 0.0005 * calm["step_time_p99_s"]
    assert wild["samples"] == 6400
    assert run_one(sweep, 1).to_pylist() == [wild]


def test_a_law_that_differs_takes_a_kernel_of_its_own(tmp_path):
    path = tmp_path / "sweep.yaml"
    laws = "[{family: exponential, mean: 1}, {family: constant, value: 1}]"
    path.write_text(
        EXPERIMENT.replace("samples: 200", "samples: 50") + f"  grid: {{cluster.noise.spread: {laws}}}\n"
    )
    sweep = load_sweep(path)
    said = []
    (batch,) = batches_of(sweep)
    table = evaluate(sweep, batch, log=said.append)
    assert said == ["2 kernels for 1, 1 cells: the laws of their noise differ"]
    assert table.column("status").to_pylist() == ["ok", "ok"]


def test_batches_are_even_so_that_none_has_shapes_of_its_own(sweep, monkeypatch):
    for most, sizes in ((64, [8]), (7, [4, 4]), (3, [3, 3, 2])):
        monkeypatch.setattr(batch_module, "DRAWN", most)
        batches = batches_of(sweep)
        assert [each.stop - each.start for each in batches] == sizes
        assert [each.start for each in batches] == [0, *(each.stop for each in batches[:-1])]
