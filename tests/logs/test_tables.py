"""Tables of one's own: columns by name, units asked for, what cannot be used said."""

import pytest

from mc.logs import LogError
from mc.logs.roles import role_of, split_name, time_of
from tests.logs import fragments
from tests.logs.fragments import FRAGMENTS


def of(read, fragment, **hints):
    name, text = FRAGMENTS[fragment]
    return read(text, name, **hints)


def test_a_series_of_steps(read):
    found = of(read, "steps")
    rows = list(found.table.rows())
    assert [(row["kind"], row["iteration"], row["line"]) for row in rows] == [
        ("step", 10, 3),
        ("step", 11, 4),
        ("step", 12, 5),
    ]
    assert [row["time_s"] for row in rows] == pytest.approx([1.2045, 1.21025, 1.999])
    assert found.files[0].wrapping == (
        "columns by their names: `step` is iteration, `step_time_ms` is time in ms; not used as figures: loss",
    )
    assert [row["time_s"] for row in of(read, "steps as JSON").table.rows()] == [1.5, 1.25]


def test_columns_and_units_can_be_chosen(read):
    text = "it;loss;wall\n1;2.5;1500\n2;2.4;1600\n"
    with pytest.raises(
        LogError, match=r"got the columns it, loss, wall \(`--step-column` and `--step-unit` name one\)"
    ):
        read(text, "steps.csv")
    with pytest.raises(
        LogError, match=r"expected the unit of the column `wall`; say `--step-unit` s, ms, us or ns"
    ):
        read(text, "steps.csv", step_column="wall")
    with pytest.raises(LogError, match=r"--step-column: there is no column `wal`; did you mean `wall`"):
        read(text, "steps.csv", step_column="wal")
    found = read(text, "steps.csv", step_column="wall", step_unit="ms", ranks=64)
    assert [(row["time_s"], row["ranks"]) for row in found.table.rows()] == [(1.5, 64), (1.6, 64)]
    assert "`wall` is time in ms, as told" in found.files[0].wrapping[0]


def test_one_column_without_a_heading(read):
    with pytest.raises(LogError, match=r"\(`--step-column` and `--step-unit` name one\)"):
        read("1.5\n1.25\n", "steps.csv")
    found = read("1.5\n1.25\n", "steps.csv", step_column="1", step_unit="s")
    assert [row["time_s"] for row in found.table.rows()] == [1.5, 1.25]


def test_several_candidates_are_not_guessed_among(read):
    text = "step,forward_time_s,backward_time_s\n1,1,2\n2,1,2.5\n"
    with pytest.raises(
        LogError, match="expected one column of times; got forward_time_s, backward_time_s: say which"
    ):
        read(text, "steps.csv")
    assert [row["time_s"] for row in read(text, "steps.csv", step_column="backward_time_s").table.rows()] == [
        2,
        2.5,
    ]


def test_a_column_for_each_process(read):
    found = read("rank0,rank1\n56.5,50.25\n68.0,37.5\n", "noise.csv", step_unit="us")
    rows = [(row["iteration"], row["process"], row["time_s"]) for row in found.table.rows()]
    assert rows == [
        (iteration, process, pytest.approx(time * 1e-6))
        for iteration, process, time in ((0, 0, 56.5), (0, 1, 50.25), (1, 0, 68.0), (1, 1, 37.5))
    ]


def test_training_at_several_scales(read):
    found = of(read, "scaling")
    rows = list(found.table.rows())
    assert [(row["ranks"], row["nodes"], row["placement"], row["time_s"]) for row in rows] == [
        (64, 8, "8x8", 10.5),
        (128, 16, "16x8", 10.9),
        (256, 32, "32x8", None),
    ]
    assert [row["mfu"] for row in rows] == pytest.approx([0.432, 0.416, 0.4])
    (table,) = found.files[0].tables
    assert table.spans == {"ranks": (64, 256), "nodes": (8, 32)}


def test_mfu_without_a_unit_is_a_share_or_percent(read):
    assert [row["mfu"] for row in read("gpus,mfu\n8,0.45\n16,0.4\n", "m.csv").table.rows()] == [0.45, 0.4]
    found = read("gpus,mfu\n8,45\n16,40\n", "m.csv")
    assert [row["mfu"] for row in found.table.rows()] == pytest.approx([0.45, 0.4])
    assert found.files[0].remarks == ("MFU is read as percent, since it exceeds 1",)
    (table,) = read("gpus,mfu\n8,0.45\n16,40\n", "m.csv").files[0].tables
    assert table.conflict_examples == (
        "line 3: mixed units: MFU is 40 here, and a share of 1 or percent in rows before",
    )


def test_long_tables_name_what_they_measure(read):
    text = (
        "gpus,metric,value\n8,Training step time (seconds per step),24.5\n8,Model flops utilization,0.43\n"
        "8,Throughput in tokens per second,7000\n"
    )
    found = read(text, "long.csv")
    assert [(row["time_s"], row["mfu"]) for row in found.table.rows()] == [(24.5, None), (None, 0.43)]
    assert [(each.reason, each.count) for each in found.files[0].skipped] == [("rows of other metrics", 1)]


def test_times_of_collectives(read):
    rows = list(of(read, "collectives").table.rows())
    assert [
        (row["collective"], row["ranks"], row["bytes"], row["in_place"], row["time_s"]) for row in rows
    ] == [
        ("all-gather", 4, 1048576, False, pytest.approx(50e-6)),
        ("all-gather", 4, 1048576, True, pytest.approx(51e-6)),
        ("all-gather", 8, 1048576, False, pytest.approx(60e-6)),
        ("all-gather", 8, 1048576, True, pytest.approx(61e-6)),
    ]
    assert rows[0]["busbw_Bps"] == pytest.approx(0.75 * 1048576 / 50e-6)
    assert rows[0]["section"] == "system=a"
    text = fragments.COLLECTIVES.replace(",20.97,", ",25.97,").replace("15.29", "25.29")
    (table,) = read(text, "nccl.csv").files[0].tables
    assert [each.split(" ")[2] for each in table.conflict_examples] == ["size/time", "algbw"]


def test_bandwidths_alone_need_a_unit(read):
    text = "op,ranks,size_bytes,busbw_{}\nall_reduce,4,1048576,31.45728\n"
    with pytest.raises(
        LogError, match=r"columns?|`busbw_gbps` has none, or `gbps`, which may be GB/s or Gb/s"
    ):
        read(text.format("gbps"), "b.csv")
    for name, hints, time in (
        ("GBps", {}, 50e-6),
        ("Gbps", {}, 400e-6),
        ("gbps", {"bandwidth_unit": "GB/s"}, 50e-6),
    ):
        (row,) = read(text.format(name), "b.csv", **hints).table.rows()
        assert row["time_s"] == pytest.approx(time)


def test_rows_that_cannot_be_used_are_counted(read):
    text = "step,step_time_s\n1,2.0\n2\n3,0\n4,-1\n5,nan\n6,\n7,2.5,1\n8,2.5\n"
    (file,) = read(text, "steps.csv").files
    assert {each.reason: each.count for each in file.skipped} == {
        "rows that have not as many columns as the heading": 2,
        "rows with a time that is zero or negative": 2,
        "rows with a time that is no number": 1,
        "rows without a figure": 1,
    }
    assert file.rows == 2


@pytest.mark.parametrize(
    ("name", "words", "unit"),
    [
        ("time_us_oop", "time oop", "us"),
        ("Training step time (seconds per step)", "training step time", "seconds"),
        ("#-GPUs", "gpus", None),
        ("sec_per_iter", "sec per iter", "sec"),
        ("t[usec]", "t", "usec"),
        ("busbw_GBps", "busbw", "GBps"),
    ],
)
def test_names_are_cut_into_words_and_a_unit(name, words, unit):
    assert split_name(name) == (words, unit)


def test_roles_of_names():
    assert role_of("world_size").name == "ranks"
    assert role_of("bf16_mfu_pct").scale == 0.01
    assert role_of("busbw_ip").in_place is True
    assert role_of("busbw_1node_8gpu") is None
    assert role_of("loss") is None
    assert time_of("t_max_us")[1].name == "time_max_s"
    assert time_of("start_ns") is None
    assert time_of("iteration_time_ms")[1].scale == 1e-3
