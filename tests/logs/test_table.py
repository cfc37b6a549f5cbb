"""The table of measurements, written and read, and chosen from."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mc.logs import COLUMNS, FORMATS, LogError, MeasurementTable, read_logs, read_table, write_table
from mc.logs.columns import SCHEMA
from mc.logs.table import METADATA
from tests.logs.fragments import FRAGMENTS


@pytest.fixture
def table(read):
    """Rows with and without every kind of column: means, calls, steps."""
    parts = [
        read(text, name).table.data for name, text in (FRAGMENTS["nccl-tests JSON"], FRAGMENTS["scaling"])
    ]
    return MeasurementTable(pa.concat_tables(parts))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_what_is_written_is_read_again(table, tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    write_table(table, path, {"rows": len(table)})
    assert read_table(path).data.equals(table.data)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []
    empty = MeasurementTable(SCHEMA.empty_table())
    write_table(empty, path)
    if suffix != ".jsonl":
        assert len(read_table(path)) == 0


def test_parquet_keeps_what_was_understood(table, tmp_path):
    write_table(table, tmp_path / "rows.parquet", {"rows": 11})
    assert json.loads(pq.read_schema(tmp_path / "rows.parquet").metadata[METADATA]) == {"rows": 11}


def test_rows_are_chosen_by_their_columns(table):
    assert len(table.where(kind="step")) == 3
    assert len(table.where(kind="collective", process=None, iteration=None)) == 2
    assert len(table.where(in_place=True)) == 1
    assert table.where(process=1).column("time_s").tolist() == pytest.approx([30e-6, 31e-6, 60e-6])


def test_columns_say_their_units():
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
    for column in COLUMNS:
        assert column.meaning
        if column.name.startswith("time_"):
            assert column.name.endswith("_s")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.xlsx", b"", "expected a name that ends in .parquet, .csv, .jsonl; got `.xlsx`"),
        ("rows.parquet", b"nothing", "cannot be read as a table of measurements"),
        (
            "rows.csv",
            b"a,b\n1,2\n",
            "expected a table that `tailstep import` wrote; got one with no source, line",
        ),
        ("rows.jsonl", b'{"a": 1}\n', "cannot be read as a table of measurements"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LogError) as refused:
        read_table(tmp_path / name)
    assert message in str(refused.value)


def test_a_table_has_all_columns():
    with pytest.raises(ValueError, match="expected the columns source, line"):
        MeasurementTable(SCHEMA.empty_table().drop_columns(["line"]))


def test_the_documentation_names_every_column_and_format():
    text = (Path(__file__).parents[2] / "docs" / "importing.md").read_text()
    assert [name for name in (*SCHEMA.names, *FORMATS) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_an_imported_table_is_imported_as_it_is(table, tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    write_table(table, path)
    found = read_logs([path, path])
    assert found.table.data.equals(pa.concat_tables([table.data, table.data]))
    assert (found.files[0].format, found.files[0].rows) == ("tailstep", len(table))
    assert found.files[0].remarks == (f"{len(table)} rows of 2 files, imported before",)
