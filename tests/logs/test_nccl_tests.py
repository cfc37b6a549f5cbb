"""Logs of nccl-tests: what is written in any dialect is read again, and what else a log holds is understood."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mc.logs import LogError
from mc.logs.sink import Draft
from tests.logs.dialects import DIALECTS, Point, figure, printed_time, write

POINTS = [Point(1024, 10.5, 11.25), Point(1 << 20, 123.4, 99.5), Point(1 << 30, 12345.6, 20000.0)]


def points_at(words: int, rates: tuple[float, float]) -> Point:
    """A size and two times, no shorter than clocks resolve, at these GB/s."""
    return Point(4 * words, *(max(4 * words / rate / 1e3, 0.5) for rate in rates))


RATES = st.floats(1e-3, 5e3)


@pytest.mark.parametrize("name", DIALECTS)
@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    derandomize=True,
)
@given(
    points=st.lists(
        st.builds(points_at, st.integers(2, 1 << 30), st.tuples(RATES, RATES)), min_size=1, max_size=6
    )
)
def test_what_is_written_in_a_dialect_is_read_again(read, name, points):
    dialect = DIALECTS[name]
    program = "broadcast_perf" if name == "broadcast of 2019" else "all_reduce_perf"
    factor = 1.0 if name == "broadcast of 2019" else 1.5
    found = read(write(points, dialect, factor=factor, program=program), "all_reduce.log", ranks=4)
    rows = list(found.table.rows())
    expected = [
        (point.size, in_place, printed_time(time, dialect) * 1e-6)
        for point in points
        for in_place, time in ((False, point.time), (True, point.in_place_time))
    ]
    assert [(row["bytes"], row["in_place"]) for row in rows] == [each[:2] for each in expected]
    assert [row["time_s"] for row in rows] == pytest.approx([each[2] for each in expected], rel=1e-12)
    (file,) = found.files
    assert file.skipped == ()
    assert [row["busbw_Bps"] / row["algbw_Bps"] for row in rows] == pytest.approx([factor] * len(rows))
    if dialect.heading:
        assert {(row["nodes"], row["placement"]) for row in rows} == {(2, "2x2")}
    if dialect.per_iteration:
        assert rows[0]["time_max_s"] == pytest.approx(float(figure(1.5 * points[0].time, 7)) * 1e-6)


def test_what_holds_for_a_table_is_inferred_and_how_is_said(read):
    (table,) = read(write(POINTS, DIALECTS["2025"])).files[0].tables
    assert table.facts == {
        "collective": "all-reduce",
        "ranks": 4,
        "nodes": 2,
        "device": "NVIDIA H100",
        "software": "NCCL 2.28.7",
        "iterations": 20,
    }
    assert table.inferred["collective"] == "from the program's name, all_reduce_perf"
    assert table.inferred["nodes"] == "from the 2 hosts that the log lists"
    assert (table.rows, table.smallest, table.largest) == (6, 1024, 1 << 30)


def test_ranks_come_from_the_bandwidths_where_nothing_lists_them(read):
    rows = write([Point(1 << 28, 1000.0, 1001.0)], DIALECTS["rows only"], factor=2 * 15 / 16)
    (table,) = read(rows, "x_allreduce.txt").files[0].tables
    assert table.facts == {"collective": "all-reduce", "ranks": 16}
    assert table.inferred == {"collective": "from the name of the file", "ranks": "from busbw/algbw"}
    assert "the number of nodes is not known: say `--nodes`" in table.remarks


def test_ranks_come_from_size_and_count_of_gathers(read):
    rows = write([Point(1 << 28, 1000.0, 1001.0)], DIALECTS["rows only"], factor=7 / 8, share=8)
    (table,) = read(rows, "alltoall.txt").files[0].tables
    assert (table.facts["collective"], table.facts["ranks"]) == ("all-to-all", 8)
    assert table.inferred["ranks"] == "from size and count"


def test_several_tables_of_one_file(read):
    text = write(POINTS, DIALECTS["2025"]) + write(
        POINTS, DIALECTS["2025"], program="sendrecv_perf", hosts=("a", "b"), factor=1.0
    )
    tables = read(text).files[0].tables
    assert [(each.facts["collective"], each.facts["ranks"], each.facts["nodes"]) for each in tables] == [
        ("all-reduce", 4, 2),
        ("send-recv", 2, 2),
    ]


def test_headings_of_parts_say_ranks_nodes_algorithm_and_protocol(read):
    row = "  268435456  67108864  float  sum  -1  1187.29  226.09  {}  0  1182.80  226.95  {}  0\n"
    text = (
        "### GPUS=4 ALGO=Ring\n"
        + row.format("339.14", "340.42")
        + "====== 2-node ======\n### GPUS=4 PROTO=LL128\n"
        + row.format("339.14", "340.42")
    )
    rows = list(read(text, "all_reduce.txt").table.rows())
    assert [(row["ranks"], row["algorithm"], row["protocol"]) for row in rows[::2]] == [
        (4, "Ring", None),
        (4, None, "LL128"),
    ]


def test_messages_of_nccl_say_which_algorithm_each_size_took(read):
    text = (
        "  536870912  134217728  float  sum  -1n1:1:1 [0] NCCL INFO AllReduce: 536870912 Bytes -> Algo RING proto SIMPLE"
        " channel{Lo..Hi}={0..23}\n"
        "n1:1:1 [0] NCCL INFO comm 0x0 rank 0 nRanks 2 nNodes 1 localRanks 2\n"
        "  1705.39  314.81  314.81  0n1:1:1 [0] NCCL INFO something else\n"
        "  1709.13  314.12  314.12  0\n"
    )
    found = read(text, "all_reduce.log")
    rows = list(found.table.rows())
    assert [row["time_s"] for row in rows] == pytest.approx([1705.39e-6, 1709.13e-6])
    assert {(row["algorithm"], row["protocol"], row["channels"]) for row in rows} == {("Ring", "Simple", 24)}
    assert {(row["ranks"], row["nodes"]) for row in rows} == {(2, 1)}


def test_what_is_no_row_is_counted_by_reason(read):
    text = (
        "+ export A=1\n...\nsrun: job 1 queued\nsomething else\n"
        + write(POINTS[:1], DIALECTS["2022"])
        + "  2048  512  float  sum  -1  12.0\n  0  0  float  sum  -1  1.0 0.00 0.00 0  1.0 0.00 0.00 0\n"
        + "  4096  1024  float  sum  -1  nan 0.00 0.00 0  1.0 0.00 0.00 0\n"
        + "  4096  1024  float  sum  -1  0.00 0.00 0.00 0  1.0 4.10 6.14 0\n"
    )
    (file,) = read(text).files
    assert {each.reason: (each.count, each.lines) for each in file.skipped} == {
        "traces of the shell": (1, (1,)),
        "marks of rows that somebody left out": (1, (2,)),
        "messages of launchers and libraries": (1, (3,)),
        "lines that are no row of a table": (1, (4,)),
        "rows cut short: no time": (1, (21,)),
        "rows of zero bytes": (2, (22, 22)),
        "a row with nan where a time or bandwidth should be": (1, (23,)),
        "rows whose time is zero or negative": (1, (24,)),
    }
    assert file.rows == 3


def test_rows_that_contradict_themselves_are_left_out_unless_asked_for(read):
    text = write(POINTS, DIALECTS["2022"]).replace("123.4", "153.4")
    found = read(text)
    (table,) = found.files[0].tables
    assert (len(found.table), table.rows, table.conflicts) == (5, 5, 1)
    assert table.conflict_examples[0] == "line 14: size/time is 6.836 GB/s, algbw 8.5 GB/s"
    kept = read(text, keep_conflicts=True)
    assert len(kept.table) == 6
    assert sum(row["conflict"] is not None for row in kept.table.rows()) == 1


def test_a_wrong_number_of_ranks_is_a_contradiction(read):
    with pytest.raises(LogError, match=r"algbw x 1\.75 \(all-reduce of 8 ranks\) is"):
        read(write(POINTS[1:], DIALECTS["2022"]), ranks=8)


def test_times_in_another_unit_are_recognised(read):
    rows = "".join(
        f"  {1 << k}  {1 << k - 2}  float  sum  -1  {(1 << k) / 1e7:.4f}  10.00  15.00  0\n"
        for k in (24, 26, 28)
    )
    with pytest.raises(LogError, match="mixed units: times look like ms where us are expected"):
        read(rows, "all_reduce.txt")
    heading = "# size count type redop root time algbw busbw #wrong\n# (B) (elements) (ms) (GB/s) (GB/s)\n"
    with pytest.raises(
        LogError, match=r"job\.log:2: expected times in us and bandwidths in GB/s, .*; got ms"
    ):
        read(heading + rows)


def test_wrong_results_are_not_used_silently(read):
    text = write(POINTS, DIALECTS["2022"]).replace("18.52       0", "18.52       0")
    row = "  8192  2048  float  sum  -1  20.00  0.41  0.61  7  20.00  0.41  0.61  0\n"
    (table,) = read(text + row).files[0].tables
    assert table.conflicts == 1
    assert "7 elements came out wrong" in table.conflict_examples[0]


def test_one_row_and_equal_times_are_said(read):
    rows = [Point(1 << 20, 50.0, 50.0), Point(1 << 21, 50.0, 50.0)]
    (table,) = read(write(rows, DIALECTS["2022"])).files[0].tables
    assert table.remarks == ("all 4 times are 5e-05 s: not a measurement of anything that varies",)
    single = "  1048576  262144  float  sum  -1  50.00  20.97  31.46  0\n"
    (table,) = read(single, "all_reduce.txt", ranks=4, nodes=1).files[0].tables
    assert table.remarks == ("only one row: nothing can be fitted to it",)


def test_a_long_table_is_handed_on_in_parts(read, monkeypatch):
    monkeypatch.setattr(Draft, "MOST", 4)
    found = read(write(POINTS * 5, DIALECTS["2025"]))
    (table,) = found.files[0].tables
    assert (table.rows, len(found.table), table.facts["ranks"]) == (30, 30, 4)
    assert table.first_line == 13


def test_a_half_that_was_not_run_is_blank(read):
    heading = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    row = "  8192  2048  float  sum  -1" + 32 * " " + "  20.00  0.41  0.61  0\n"
    (only,) = read(heading + row, "all_reduce.log").table.rows()
    assert (only["in_place"], only["time_s"]) == (True, pytest.approx(20e-6))


def test_columns_are_read_by_their_heading(read):
    """Bits that differ are counted in a column of their own, between the wrong elements and the times of calls."""
    half = "time algbw busbw #wrong #bitdiff i_min i_max i_p99 i_cv%"
    row = "8192 2048 float sum -1" + 2 * " 20.00 0.41 0.61 0 12 18.00 25.00 24.00 5.00"
    rows = list(read(f"# size count type redop root {half} {half}\n{row}\n", "all_reduce.log").table.rows())
    assert [(each["time_max_s"], each["wrong"], each["time_std_s"]) for each in rows] == [
        (pytest.approx(25e-6), 0, pytest.approx(1e-6))
    ] * 2


def test_rccl_tests_mark_errors_with_an_asterisk(read):
    text = (
        "rccl-tests: Version develop:1\nHIP version  : 6.4\nROCm version : 6.4\nHostname     : n1\n"
        "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n"
        "#       size         count      type   redop    root     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "        8192          2048     float     sum      -1    20.00    0.41    0.61  1e+00*   20.00    0.41    0.61  2e-07\n"
    )
    (file,) = read(text, "all_reduce.log").files
    assert (file.rows, file.conflicts) == (1, 1)
    assert [each.reason for each in file.skipped] == ["versions and places of libraries"]


def test_what_the_user_says_goes_before_what_the_log_says(read):
    found = read(write(POINTS, DIALECTS["2025"], hosts=("n1",) * 4), nodes=2, algorithm="Tree")
    assert {(row["nodes"], row["algorithm"]) for row in found.table.rows()} == {(2, "Tree")}
    assert found.files[0].tables[0].inferred["nodes"] == "given by the user"
