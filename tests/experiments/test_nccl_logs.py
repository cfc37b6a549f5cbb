"""Logs as curves of systems, the figures that the experiment carries, and how far off predictions are."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.nccl_logs import __main__ as command
from experiments.nccl_logs import data
from experiments.nccl_logs.compare import cluster_of, errors
from experiments.nccl_logs.systems import system_of

ROW = "  268435456  67108864  float  sum  -1   893.11  300.56  300.56  0   895.81  299.66  299.66  {wrong}\n"


def test_logs_become_curves_of_one_system_each(tmp_path):
    """Parts by their headings, out of place only, and rows that came out wrong all the same."""
    notes = "## op: all_reduce\n## nodes: 1\n## source: somewhere\n"
    text = f"{notes}### GPUS=2\n{ROW.format(wrong=0)}### GPUS=2 ALGO=Ring\n{ROW.format(wrong=3)}"
    (tmp_path / "allreduce_h100_1x2_x.txt").write_text(text)
    (tmp_path / "alltoall_h100_1x2_x.txt").write_text(text.replace("all_reduce", "alltoall"))
    curves = data.from_logs(tmp_path)
    assert [(each.log, each.system.algorithm, each.source) for each in curves] == [
        ("allreduce_h100_1x2_x", "auto", "somewhere"),
        ("allreduce_h100_1x2_x", "ring", "somewhere"),
    ]
    for each in curves:
        assert (each.system.per_node, each.sizes.tolist()) == (2, [268435456])
        assert each.measured.tolist() == pytest.approx([893.11e-6])


def test_systems_are_told_by_their_logs():
    found = system_of("allreduce_a100_4x8_abci_ib_nccl2.8.4_oldfmt", "", {})
    assert found is not None
    assert (found.nodes, found.per_node, found.inside, found.between, found.cards) == (
        4,
        8,
        "NVLink-3",
        "InfiniBand-HDR",
        4,
    )
    assert cluster_of(found).size == 32
    # Four cards of 25 GB/s for eight chips.
    assert float(cluster_of(found).tiers[1].link.bandwidth) == pytest.approx(12.5e9)
    told = system_of(
        "allreduce_h100_1x4_algo_ring_tree_nvls",
        "ALGO=NVLS size=1",
        {"algo_or_env": "NCCL_ALGO=Ring|Tree|NVLS"},
    )
    assert told is not None
    assert (told.algorithm, told.protocol) == ("in-network", "auto")
    assert system_of("allreduce_abacus", "", {}) is None


@pytest.fixture(scope="module")
def curves():
    return data.read()


@pytest.fixture(scope="module")
def table(curves):
    # Many programs that run once: what optimising takes is not earned back.
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        return command.table(curves)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


def test_the_figures_carried_are_plausible_and_have_sources(curves):
    assert len(curves) == 82
    assert sum(len(each.sizes) for each in curves) == 2797
    for each in curves:
        assert each.source
        assert np.all(each.sizes > 0)
        # From a microsecond to a second, and no all-reduce beats twice the NVLinks of a B200.
        assert np.all((each.measured > 1e-6) & (each.measured < 1))
        assert np.all(each.sizes / each.measured < 2 * 900e9)
    assert sum(path.stat().st_size for path in data.DATA.glob("*.csv")) < 500_000


def test_writing_and_reading_agree(curves, tmp_path):
    data.write(curves[:3], tmp_path)
    for again, each in zip(data.read(tmp_path), curves[:3], strict=True):
        assert (again.log, again.system, again.source) == (each.log, each.system, each.source)
        np.testing.assert_array_equal(again.sizes, each.sizes)
        np.testing.assert_allclose(again.measured, each.measured)


def test_the_median_error_of_uncalibrated_constants(table):
    """Over all rows; and still without the log of 1,023 sizes, which has more rows than any ten others."""
    assert table[0].system == "all"
    assert table[0].rows == 2797
    assert table[0].error <= command.TARGET


def test_a_model_that_is_off_would_miss_the_target(curves):
    """The negative control: the same measurements, if everything took twice as long."""
    slow = [dataclasses.replace(each, measured=each.measured * 2) for each in curves[4:8]]
    assert np.median(np.abs(errors(slow))) > command.TARGET


def test_the_command_prints_the_table(monkeypatch, capsys, table):
    monkeypatch.setattr(command, "table", lambda curves: table)
    assert command.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["system"] == "all"
    assert {"ABCI V100, 2x EDR", "Alps GH200, 4x Slingshot", "8x H200"} <= {row["system"] for row in found}
    assert command.main([]) == 0
    assert "30 %" in capsys.readouterr().out
    monkeypatch.setattr(command, "TARGET", 0.01)
    assert command.main(["--json"]) == 1
