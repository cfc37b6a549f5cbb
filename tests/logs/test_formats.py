"""Every format but nccl-tests' text: a fragment of each gives the figures that stand in it."""

import itertools
import json

import pytest

from mc.logs import FORMATS, LogError, Prior, read_logs, write_tuner
from tests.logs import fragments
from tests.logs.fragments import FRAGMENTS

FORMAT_OF = {
    "nccl-tests JSON": "nccl-tests-json",
    "rccl-tests JSON": "rccl-tests-json",
    "inspector": "nccl-inspector",
    "tuning": "nccl-tests",
    "tuner": "nccl-tuner",
    "OSU": "osu",
    "IMB": "imb",
    "perftest": "perftest",
    "peer copies": "p2pBandwidthLatencyTest",
    "steps": "table",
    "steps as JSON": "table",
    "scaling": "table",
    "collectives": "table",
}


def of(read, fragment, **hints):
    name, text = FRAGMENTS[fragment]
    return read(text, name, **hints)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_format_is_recognised_by_its_content(read, fragment):
    (file,) = of(read, fragment).files
    assert file.format == FORMAT_OF.get(fragment, "nccl-tests")
    assert set(FORMAT_OF.values()) == set(FORMATS)


def test_json_of_nccl_tests_has_every_call_and_no_environment(read):
    found = of(read, "nccl-tests JSON")
    rows = list(found.table.rows())
    means = [row for row in rows if row["iteration"] is None]
    assert [(row["in_place"], row["time_s"], row["iterations"]) for row in means] == [
        (False, pytest.approx(50e-6), 3),
        (True, pytest.approx(40e-6), 3),
    ]
    assert means[0]["time_p99_s"] == pytest.approx(30e-6)
    calls = [
        (row["process"], row["iteration"], row["time_s"]) for row in rows if row["iteration"] is not None
    ]
    times = {None: (40, 50, 60), 0: (40, 50, 41), 1: (30, 31, 60)}
    assert calls == [
        (process, iteration, pytest.approx(time * 1e-6))
        for process, each in times.items()
        for iteration, time in enumerate(each)
    ]
    (file,) = found.files
    assert file.tables[0].facts == {
        "collective": "all-reduce",
        "ranks": 4,
        "nodes": 2,
        "device": "NVIDIA H100",
        "software": "NCCL 2.28.7",
    }
    assert file.skipped[0].reason == "results without a size or a time that is a number"
    assert file.remarks == ("the environment in the file was dropped",)
    assert "secret" not in repr(found)


def test_json_that_ends_early_says_so(read):
    with pytest.raises(LogError, match=r"run\.json:1: expected JSON; the file ends before its value does"):
        read(FRAGMENTS["nccl-tests JSON"][1][:-200], "run.json")


def test_json_whose_bandwidths_disagree_is_a_contradiction(read):
    text = json.dumps(fragments.NCCL_JSON).replace("26.2144", "29.5")
    (table,) = read(text, "run.json").files[0].tables
    assert table.conflict_examples == ("size/time is 26.21 GB/s, algbw 29.5 GB/s",)


def test_json_lines_of_rccl_tests(read):
    rows = list(of(read, "rccl-tests JSON").table.rows())
    assert [(row["bytes"], row["in_place"], row["time_s"]) for row in rows] == [
        (1048576, False, pytest.approx(60.5e-6)),
        (1048576, True, pytest.approx(61.25e-6)),
        (4194304, False, pytest.approx(120e-6)),
    ]
    # Four processes with two devices each.
    assert {(row["ranks"], row["nodes"], row["placement"], row["line"] > 0) for row in rows} == {
        (8, 2, "2x4", True)
    }


def test_the_inspector_gives_each_rank_and_call(read):
    found = of(read, "inspector")
    rows = list(found.table.rows())
    # One rank's part of an all-gather is a quarter of its buffer.
    assert [(row["collective"], row["process"], row["iteration"], row["bytes"]) for row in rows] == [
        ("all-gather", 0, 1, 1048576),
        ("all-gather", 1, 1, 1048576),
        ("all-reduce", 0, 2, 262144),
    ]
    assert [row["time_s"] for row in rows] == pytest.approx([100e-6, 130e-6, 90e-6])
    assert {(row["algorithm"], row["protocol"], row["ranks"], row["nodes"]) for row in rows} == {
        ("Ring", "Simple", 4, 2)
    }
    assert found.files[0].remarks == ("the inspector dropped 5 calls",)
    assert [each.reason for each in found.files[0].skipped] == ["calls whose time is zero us"]


def test_tuning_logs_give_priors(read):
    found = of(read, "tuning")
    assert len(found.table) == 0
    ways = {(each.algorithm, each.protocol): (each.latency_s, each.bandwidth_Bps) for each in found.priors}
    assert ways == {
        ("Tree", "LL"): (8e-6, 61.1e9),
        ("Tree", "LL128"): (pytest.approx(16.5e-6), pytest.approx(180.6e9)),
        ("Tree", "Simple"): (pytest.approx(16.4e-6), pytest.approx(232.2e9)),
        ("Ring", "LL"): (pytest.approx(7.8e-6), 141e9),
        ("Ring", "LL128"): (pytest.approx(17.8e-6), pytest.approx(331.2e9)),
        ("Ring", "Simple"): (pytest.approx(15.2e-6), 360e9),
        ("NVLS", "Simple"): (pytest.approx(25e-6), 102e9),
    }
    assert {(each.collective, each.ranks, each.nodes) for each in found.priors} == {("all-reduce", 16, 2)}
    assert isinstance(found.priors[0], Prior)


def test_tuning_logs_of_one_wide_table(read):
    """As before 2.27: no heading of algorithms, all cells of a collective in one line."""
    cells = " | ".join(f"{latency:.1f}/ {latency + 1:.1f}" for latency in range(1, 19))
    found = read(f"n1:10:11 [0] NCCL INFO    AllReduce | {cells} |\n", "nccl.log")
    assert [(each.algorithm, each.protocol) for each in found.priors] == list(
        itertools.product(
            ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"), ("LL", "LL128", "Simple")
        )
    )
    assert found.priors[4].latency_s == pytest.approx(5e-6)


def test_a_table_of_the_tuner_is_written_as_it_was_read(read, tmp_path):
    choices = of(read, "tuner").choices
    assert [
        (each.collective, each.algorithm, each.protocol, each.channels, each.nodes, each.ranks)
        for each in choices
    ] == [
        ("all-reduce", "Tree", "LL", 2, 1, None),
        ("all-reduce", "NVLSTree", "Simple", None, 4, 32),
        ("broadcast", "Ring", "LL128", None, None, None),
    ]
    assert [(each.pipe_ops, each.registered) for each in choices] == [(None, True), (1, None), (None, None)]
    path = tmp_path / "written.csv"
    write_tuner(choices, path)
    assert path.read_text().splitlines()[1:] == [
        "allreduce,0,65536,tree,ll,2,1,-1,-1,1",
        "allreduce,65537,4294967295,nvls_tree,simple,-1,4,32,1,-1",
        "broadcast,0,4294967295,ring,ll128,-1,-1,-1,-1,-1",
    ]
    assert read_logs([path]).choices == choices


def test_osu(read):
    found = of(read, "OSU")
    gather, pairs, latency = found.files[0].tables
    rows = list(found.table.rows())
    assert gather.facts["collective"] == "all-gather"
    # The buffer is four times what one rank sends.
    assert [(row["bytes"], row["iterations"]) for row in rows[:2]] == [(4, 1000), (4096, 1000)]
    assert [
        rows[1][name] for name in ("time_s", "time_min_s", "time_max_s", "time_p50_s", "time_p99_s")
    ] == pytest.approx([20.5e-6, 19.5e-6, 21.75e-6, 20.4e-6, 21.7e-6])
    # Two pairs share 2,048 MB/s, so each moves 1,024 bytes in a microsecond.
    assert (pairs.facts["ranks"], rows[2]["timing"]) == (4, "back-to-back")
    assert rows[2]["time_s"] == pytest.approx(1e-6)
    assert (latency.kind, rows[4]["bytes"], rows[4]["time_s"]) == ("transfer", 0, pytest.approx(2.09e-6))
    assert rows[4]["timing"] == "half-round-trip"


def test_osu_needs_the_ranks_where_its_sizes_are_of_one(read):
    (file,) = read(fragments.OSU, "osu.log").files
    assert (
        file.skipped[0].reason
        == "rows whose size is that of one rank, where the number of ranks is not known (`--ranks`)"
    )
    assert file.skipped[0].count == 2
    assert len(read(fragments.OSU, "osu.log", ranks=4).table) == 6


def test_intel_mpi_benchmarks(read):
    found = of(read, "IMB")
    rows = list(found.table.rows())
    assert [(row["operation"], row["bytes"], row["ranks"], row["time_s"]) for row in rows] == [
        ("PingPong", 0, 2, pytest.approx(1.66e-6)),
        ("PingPong", 1048576, 2, pytest.approx(100e-6)),
        ("Alltoall", 0, 4, pytest.approx(0.04e-6)),
        ("Alltoall", 4096, 4, pytest.approx(12e-6)),
        ("Barrier", None, 4, pytest.approx(3.04e-6)),
    ]
    assert rows[3]["time_max_s"] == pytest.approx(14e-6)
    # Megabytes of 2**20, as before 2018, agree too; others do not.
    assert len(read(fragments.IMB.replace("10485.76", "10000.00"), "imb.log").table) == 5
    assert read(fragments.IMB.replace("10485.76", "9000.00"), "imb.log").files[0].conflicts == 1


def test_perftest(read):
    rows = list(of(read, "perftest").table.rows())
    assert [row["timing"] for row in rows] == ["back-to-back", "call", "back-to-back"]
    # Megabytes of 2**20; gigabits of 10**9, of both directions.
    assert [row["time_s"] for row in rows] == pytest.approx(
        [65536 / (11043.78 * 2**20), 1.88e-6, 2 * 65536 / (392e9 / 8)]
    )
    assert rows[1]["time_p999_s"] == pytest.approx(5.41e-6)
    assert read(fragments.PERFTEST.replace("0.176700", "0.276700"), "ib.log").files[0].conflicts == 1


def test_copies_between_devices(read):
    found = of(read, "peer copies")
    rows = [(row["pair"], row["bytes"], row["time_s"]) for row in found.table.rows()]
    assert rows == [
        ("0-1", 160_000_000, pytest.approx(160e6 / 400e9)),
        ("1-0", 160_000_000, pytest.approx(160e6 / 320e9)),
        ("0-1", 160_000_000, pytest.approx(160e6 / 320e9)),
        ("1-0", 160_000_000, pytest.approx(160e6 / 320e9)),
        ("0-1", 16, pytest.approx(2.5e-6)),
        ("1-0", 16, pytest.approx(2.25e-6)),
        ("0-1", 16, pytest.approx(2e-6)),
        ("1-0", 16, pytest.approx(2e-6)),
    ]
    assert [each.reason for each in found.files[0].skipped] == ["copies within one device (the diagonal)"]
    with pytest.raises(LogError, match=r"expected GB/s; got a matrix in MB/s"):
        read(fragments.P2P.replace("Matrix (GB/s)", "Matrix (MB/s)"), "p2p.log")
