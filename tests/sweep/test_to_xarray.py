"""Rows of a sweep with labelled axes: every figure stays at the values that it was found for."""

import numpy as np
import pytest

import mc
from mc.errors import InputError
from mc.sweep import to_xarray as module
from tests.sweep.test_sweep_files import EXPERIMENT

SIZE = "model.exchange.size"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "sweep.yaml"
    block = "  samples: 0\n  grid: {plan.ranks: [16, 8], model.exchange.size: [1 MB, 2 MB, 4 MB]}\n"
    path.write_text(EXPERIMENT + block)
    sweep = mc.load_sweep(path)
    return sweep, mc.run_sweep(sweep)


def test_a_full_grid_has_its_axes_in_any_order_of_rows(found):
    sweep, table = found
    data = mc.to_xarray(sweep, table.take([5, 3, 1, 0, 2, 4]))
    assert dict(data.sizes) == {"plan.ranks": 2, SIZE: 3}
    for row in table.to_pylist():
        cell = data.sel({"plan.ranks": row["plan.ranks"], SIZE: row[SIZE]})
        assert int(cell["cell"]) == row["cell"]
        assert float(cell["step_time_mean_s"]) == row["step_time_mean_s"]
    assert [data[name].attrs["units"] for name in (SIZE, "step_time_mean_s")] == ["B", "s"]
    assert np.all(data["status"] == "ok")


def test_a_part_of_the_cells_has_one_dimension(found):
    sweep, table = found
    data = mc.to_xarray(sweep, table.slice(1, 3))
    assert dict(data.sizes) == {"cell": 3}
    assert data["cell"].values.tolist() == [1, 2, 3]
    assert data["plan.ranks"].values.tolist() == [16, 16, 8]


def test_what_is_refused(found, monkeypatch):
    sweep, table = found
    with pytest.raises(InputError, match=r"got none with a column `plan\.ranks`"):
        mc.to_xarray(sweep, table.drop_columns(["plan.ranks"]))
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tailstep\[xarray\]'"):
        mc.to_xarray(sweep, table)
