"""The parser on the variants it must read, the figures that the experiment carries, and how far off predictions are."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.nccl_logs import __main__ as command
from experiments.nccl_logs import data
from experiments.nccl_logs.compare import cluster_of, errors
from experiments.nccl_logs.parse import headers, rows
from experiments.nccl_logs.systems import system_of

NEW = "  268435456  67108864  float  sum  -1   893.11  300.56  300.56  0   895.81  299.66  299.66  0"
VARIANTS = [
    (NEW, 268435456, 893.11, 1.0),
    # No root, errors in scientific notation; a time without a decimal point.
    (
        "  1048576  262144  float  sum  79.52  13.19  24.72  2e-07  78.95  13.28  24.90  2e-07",
        1048576,
        79.52,
        24.72 / 13.19,
    ),
    (
        "  8589934592  2147483648  float  sum  -1   31533  272.41  476.72  0",
        8589934592,
        31533,
        476.72 / 272.41,
    ),
    ("[1,0]<stdout>:    67108864  16777216  float  sum  -1  996.0  67.38  126.33  0", 67108864, 996.0, 1.875),
    (" 0:   67108864  16777216  half  sum  -1  996.0  67.38  126.33  N/A", 67108864, 996.0, 1.875),
    # Authors who cut the root away, and rows too short to tell the number of ranks.
    ("     1048576  262144  float  sum  25.35  41.37  62.06", 1048576, 25.35, 1.5),
    ("          8  2  float  sum  -1  17.93  0.00  0.00  0", 8, 17.93, None),
]


@pytest.mark.parametrize(("line", "size", "time", "ratio"), VARIANTS)
def test_rows(line, size, time, ratio):
    (row,) = rows(f"# a comment\n{line}\n# Avg bus bandwidth : 1.0\n")
    assert (row.section, row.size) == ("", size)
    assert row.time == pytest.approx(time * 1e-6)
    assert row.ratio is None if ratio is None else row.ratio == pytest.approx(ratio, rel=1e-2)


def test_a_row_that_a_message_cut_in_two():
    text = (
        "  536870912  134217728  float  sum  -1host:1:1 [0] NCCL INFO AllReduce: 536870912 Bytes -> Algo RING\n"
        "host:1:1 [0] NCCL INFO something else\n"
        "  1705.39  314.81  314.81  0  1709.13  314.12  314.12  0\n"
    )
    (row,) = rows(text)
    assert (row.size, row.time) == (536870912, pytest.approx(1705.39e-6))


def test_sections_headers_and_what_is_no_row():
    text = "\n".join(
        (
            *("## op: all_reduce", "## nodes: 2", "### GPUS=4", NEW, "====== 8-node ======", NEW),
            *("  0 0 float sum -1 12.2 0.00 0.00 0", "noise 12", ""),
        )
    )
    assert headers(text) == {"op": "all_reduce", "nodes": "2"}
    assert [row.section for row in rows(text)] == ["GPUS=4", "8-node"]


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
