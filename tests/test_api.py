"""Functions of `mc` that take several packages: what they refuse, and that they carry through what they are given."""

import numpy as np
import pytest

import mc
from mc import api
from mc.document import ConfigError
from mc.errors import InputError


def test_an_experiment_on_another_cluster():
    experiment = mc.load_experiment("quickstart", ["plan.ranks=128"])
    other = mc.load_cluster("dgx-a100-superpod")
    moved = mc.on_cluster(experiment, other)
    assert (moved.cluster, moved.plan, moved.run) == (other, experiment.plan, experiment.run)
    with pytest.raises(ValueError, match="2048 ranks asked for"):
        mc.on_cluster(
            mc.load_experiment("quickstart", ["cluster.tiers.2.fan_out=8", "plan.ranks=2048"]), other
        )


def test_a_difference_is_under_the_noise_of_the_first(monkeypatch):
    ran = []
    monkeypatch.setattr(api, "run", ran.append)
    monkeypatch.setattr(api, "compare", lambda first, second: "compared")
    first = mc.load_experiment("quickstart", ["run.seed=7"])
    second = mc.load_experiment("quickstart", ["run.seed=8", "plan.ranks=8"])
    assert mc.difference(first, second) == "compared"
    assert [each.run.seed for each in ran] == [7, 7]
    assert [each.ranks for each in ran] == [1024, 8]


def test_a_sweep_is_a_table_in_the_order_of_cells(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "extends: quickstart\nplan: {algorithm: ring}\nsweep: {grid: {plan.ranks: [64, 8]}, samples: 0}\n"
    )
    table = mc.run_sweep(file)
    assert table.column("cell").to_pylist() == [0, 1]
    assert table.column("ranks").to_pylist() == [64, 8]
    times = np.asarray(table.column("step_time_mean_s"))
    assert times[0] > times[1] > 16 / 989 / 0.4


def test_refusals(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        mc.run_sweep(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match=r"missing\.log"):
        mc.calibrate("dgx-h100-superpod", tmp_path / "missing.log")
    with pytest.raises(InputError, match="did you mean `dgx-h100-superpod`"):
        mc.calibrate("dgx-h100-superpot", tmp_path / "missing.log")
